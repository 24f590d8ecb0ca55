// `assay serve`: an OpenAI-compatible server for one model at one precision, from a plan or from flags.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/known_models.h"
#include "cli/model_options.h"
#include "cli/serve_api_options.h"
#include "cli/serve_canary.h"
#include "cli/serve_memory.h"
#include "cli/serve_net_options.h"
#include "cli/serve_schedule_options.h"
#include "cli/serve_signals.h"
#include "cli/serve_watch_options.h"
#include "records/plan.h"
#include "serve/api_server.h"
#include "tune/model_identity.h"

namespace assay {
namespace {

constexpr uint64_t kDefaultKvBytes = kGiB;

struct ServeFlags {
  ModelOptions model;
  std::string plan;
  std::string host = "127.0.0.1";
  int port = 8000;
  ServeNetOptions net;
  ServeScheduleOptions schedule;
  std::string model_name;
  std::string chat_template;
  std::string kv_memory;
  int max_sequences = 16;
  int max_queue = 1024;
  int step_tokens = 512;
  int page_tokens = 16;
  bool no_prefix_cache = false;
  double drain_seconds = 30;
  bool dry_run = false;
  bool log_requests = false;
  ServeApiOptions api;
  ServeWatchOptions watch;
};

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::printf("%s\n", fmt::format(format, std::forward<Args>(args)...).c_str());
  std::fflush(stdout);  // who starts the server through a pipe waits for these lines
}

// The plan's model and precision become those of the flags.
Result<std::optional<Plan>> apply_plan(ServeFlags& flags) {
  if (flags.plan.empty()) {
    if (flags.model.model.empty()) {
      return fail(ErrorCode::kInvalidArgument, "serve",
                  "say what to serve: --plan plan.json or --model MODEL");
    }
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(Plan plan, read_plan(flags.plan));
  if (flags.model.model.empty()) flags.model.model = plan.model.path;
  flags.model.precision = to_string(plan.chosen()->precision);
  ASSIGN_OR_RETURN(const std::filesystem::path path, resolve_model(flags.model.model));
  ASSIGN_OR_RETURN(const ModelIdentity now, identify_model(path));
  if (now.hash != plan.model.hash || now.file_bytes != plan.model.file_bytes) {
    return fail(ErrorCode::kInvalidArgument, flags.plan,
                "was made for another content of {}; run assay tune again", path.string());
  }
  return plan;
}

std::string name_of(const ServeFlags& flags) {
  if (!flags.model_name.empty()) return flags.model_name;
  const std::filesystem::path path(flags.model.model);
  for (const KnownModel& known : known_models()) {
    if (known.name == flags.model.model || known.file == path.filename().string())
      return std::string(known.name);
  }
  return path.has_extension() ? path.stem().string() : path.filename().string();
}

// Where the KV cache's size comes from: the flag, else what the contract's memory bound leaves, else the
// engine's rule.
Result<uint64_t> kv_budget(const ServeFlags& flags, const std::optional<Plan>& plan, const Model& model) {
  const uint64_t available = available_memory_bytes();
  if (!flags.kv_memory.empty()) {
    const auto asked = parse_bytes(flags.kv_memory);
    if (!asked) return std::unexpected(asked.error().within("--kv-memory"));
    if (*asked == 0) return fail(ErrorCode::kInvalidArgument, "--kv-memory", "must be above zero");
    if (*asked <= available) return *asked;
    return fail(ErrorCode::kResourceExhausted, "--kv-memory", "{} were asked for, only {} are available",
                format_bytes(*asked), format_bytes(available));
  }
  if (plan && plan->contract.memory.resident_bytes) {
    const uint64_t bound = *plan->contract.memory.resident_bytes;
    const uint64_t fixed = model.weight_bytes() + model.workspace_bytes();
    if (fixed < bound) return std::min(bound - fixed, std::max<uint64_t>(available, 1));
    return fail(ErrorCode::kResourceExhausted, flags.plan,
                "the contract allows {} of memory; weights and workspace alone take {}", format_bytes(bound),
                format_bytes(fixed));
  }
  const double one_sequence =
      model.kv_layout(flags.page_tokens).bytes_per_token() * (model.max_context() + flags.page_tokens);
  const uint64_t usual = std::max(kDefaultKvBytes, static_cast<uint64_t>(one_sequence));
  return usual <= available / 2 ? usual : 0;  // 0: the engine's rule, at most half of what is available
}

// What cannot fit is refused before anything is allocated.
Result<void> check_fit(const ServeFlags& flags, uint64_t available) {
  ASSIGN_OR_RETURN(const std::filesystem::path path, resolve_model(flags.model.model));
  ASSIGN_OR_RETURN(const Precision precision, precision_of(flags.model, true));
  ASSIGN_OR_RETURN(const uint64_t weights, least_weight_bytes(path, precision));
  uint64_t kv = 0;
  if (!flags.kv_memory.empty()) {
    const auto asked = parse_bytes(flags.kv_memory);
    if (!asked) return std::unexpected(asked.error().within("--kv-memory"));
    kv = *asked;
  }
  return check_memory(weights, kv, available);
}

void print_memory(const Engine& engine, const ServeFlags& flags, uint64_t available_before) {
  const Model& model = engine.model();
  const KvLayout layout = model.kv_layout(flags.page_tokens);
  const auto blocks = static_cast<uint64_t>(engine.stats().kv_blocks_total);
  const uint64_t kv = blocks * layout.block_bytes();
  const uint64_t total = model.weight_bytes() + model.workspace_bytes() + kv;
  say("memory     weights {}, workspace {}, KV {}: {} in all", format_bytes(model.weight_bytes()),
      format_bytes(model.workspace_bytes()), format_bytes(kv), format_bytes(total));
  say("           KV holds {} tokens ({} pages of {}, {:.0f} B a token)", blocks * flags.page_tokens, blocks,
      flags.page_tokens, layout.bytes_per_token());
  say("           of {} available at the start, {} stay free in reserve", format_bytes(available_before),
      format_bytes(available_before > total ? available_before - total : 0));
  say("batch      up to {} sequences of up to {} tokens, {} more may wait; {} tokens a step",
      flags.max_sequences, engine.max_context(), flags.max_queue, flags.step_tokens);
}

ServedModel served_model(const ServeFlags& flags, const LoadedModel& loaded, std::shared_ptr<Engine> engine) {
  ServedModel served{.name = name_of(flags),
                     .aliases = {"default"},
                     .engine = std::move(engine),
                     .precision = describe_effective_precision(*loaded.model()),
                     .n_embedding = static_cast<int>(loaded.model()->config().n_embedding)};
  if (loaded.has_template()) {
    served.render_chat = [loaded](const std::vector<ChatMessage>& messages, const boost::json::array& tools) {
      return loaded.render(messages, tools);
    };
    served.chat_template = loaded.template_source();
    served.tool_format = detect_tool_format(loaded.template_source());
  } else {
    served.no_chat_reason = loaded.template_error();
  }
  return served;
}

// Fails when the port is taken, before minutes are spent on loading.
Result<void> try_port(const ServeFlags& flags) {
  ServerConfig config{.address = flags.host, .port = static_cast<uint16_t>(flags.port)};
  RETURN_IF_ERROR(HttpServer::start(std::move(config), {}));
  return {};
}

void reload_certificate(ApiServer& server) {
  const auto reloaded = server.reload_tls();
  if (!reloaded) return log_error("the certificate stays as it was: {}", reloaded.error().message());
  say("TLS        certificate and key were read again");
}

void reload(const ServeFlags& flags, ApiServer& server) {
  server.reopen_logs();
  if (!flags.net.tls_certificate.empty()) reload_certificate(server);
  const auto tenants = read_tenants(flags.api);
  if (!tenants) {
    log_error("keys and limits stay as they were: {}", tenants.error().message());
    return;
  }
  // What began with keys goes on with keys, and the other way round.
  if (!flags.api.api_keys.empty()) server.replace_tenants(*tenants);
  say("keys       {}", describe_tenants(flags.api, *tenants));
}

Result<int> serve_until_signal(const ServeFlags& flags, ServerConfig http, const LoadedModel& loaded,
                               std::shared_ptr<Engine> engine, const std::optional<Plan>& plan) {
  ASSIGN_OR_RETURN(const ServeSignals signals, ServeSignals::install());
  ServeConfig config;
  config.http = std::move(http);
  config.http.address = flags.host;
  config.http.port = static_cast<uint16_t>(flags.port);
  config.limits.max_json_depth = flags.net.max_json_depth;
  const bool secure = config.http.tls.has_value();
  ASSIGN_OR_RETURN(config.tenants, read_tenants(flags.api));
  say("keys       {}", describe_tenants(flags.api, config.tenants));
  ASSIGN_OR_RETURN(config.watch, watch_config_of(flags.watch));
  ASSIGN_OR_RETURN(const auto server,
                   ApiServer::start(std::move(config), served_model(flags, loaded, engine)));
  say("address    {}://{}", secure ? "https" : "http", server->address());
  const Stopwatch clock;
  ASSIGN_OR_RETURN(const std::string canary, try_canary(loaded, *engine, plan));
  server->set_ready();
  say("ready      {} ({})", canary, format_seconds(clock.seconds()));
  while (signals.wait() == SIGHUP) reload(flags, *server);
  say("draining   up to {} for running requests; a second signal ends at once",
      format_seconds(flags.drain_seconds));
  const bool clean = server->drain(flags.drain_seconds);
  say("stopped    {}", clean ? "every request was answered" : "some requests were cut");
  return kExitDone;
}

Result<void> apply_chat_template(const ServeFlags& flags, LoadedModel& loaded) {
  if (flags.chat_template.empty()) return {};
  ASSIGN_OR_RETURN(std::string source, read_file(flags.chat_template, 1 << 20));
  const auto set = loaded.set_template(std::move(source));
  if (!set) return std::unexpected(set.error().within(flags.chat_template));
  return {};
}

Result<int> run_serve(ServeFlags flags) {
  if (flags.host == "localhost") flags.host = "127.0.0.1";
  if (flags.log_requests) set_log_level(LogLevel::kDebug);
  ASSIGN_OR_RETURN(ServerConfig http, server_config(flags.net));
  RETURN_IF_ERROR(watch_config_of(flags.watch));  // before the model is loaded
  std::signal(SIGPIPE, SIG_IGN);  // an access log piped to a reader that ended must not end the server
  ASSIGN_OR_RETURN(const std::optional<Plan> plan, apply_plan(flags));
  RETURN_IF_ERROR(read_tenants(flags.api));  // before minutes are spent on loading
  if (!flags.dry_run) RETURN_IF_ERROR(try_port(flags));
  const uint64_t available_before = available_memory_bytes();
  RETURN_IF_ERROR(check_fit(flags, available_before));
  const Stopwatch clock;
  ASSIGN_OR_RETURN(LoadedModel loaded, load_model(flags.model, flags.step_tokens, true));
  RETURN_IF_ERROR(apply_chat_template(flags, loaded));
  EngineConfig config;
  ASSIGN_OR_RETURN(config.kv_budget_bytes, kv_budget(flags, plan, *loaded.model()));
  config.page_tokens = flags.page_tokens;
  config.max_sequences = flags.max_sequences;
  config.max_queue = flags.max_queue;
  config.step_token_budget = flags.step_tokens;
  config.prefix_cache = !flags.no_prefix_cache;
  RETURN_IF_ERROR(apply_schedule_options(
      flags.schedule, plan ? plan->contract.latency.tpot_seconds : std::nullopt, config));
  ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine,
                   Engine::create(loaded.model(), loaded.tokenizer(), config));
  say("model      {} ({})", name_of(flags), loaded.path().string());
  say("precision  {}", describe_effective_precision(*loaded.model()));
  say("backend    {}, loaded in {}", loaded.model()->backend().name(), format_seconds(clock.seconds()));
  print_memory(*engine, flags, available_before);
  if (!loaded.has_template()) say("note       no chat: {}", loaded.template_error());
  if (flags.dry_run) return kExitDone;
  return serve_until_signal(flags, std::move(http), loaded, std::move(engine), plan);
}

}  // namespace

Run configure_serve_command(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  app.add_option("--plan", flags->plan, "serve what `assay tune` chose (plan.json)");
  app.add_option("--model,model", flags->model.model,
                 "checkpoint or short name; with --plan: where it is now");
  add_precision_options(app, flags->model);
  app.add_option("--host", flags->host, "address to listen on; 0.0.0.0 is every network")
      ->capture_default_str();
  app.add_option("--port", flags->port, "port; 0 picks a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  add_schedule_options(app, flags->schedule);
  add_serve_net_options(app, flags->net);
  app.add_option("--model-name", flags->model_name, "name in the API; \"default\" is accepted too");
  app.add_option("--chat-template", flags->chat_template,
                 "file with a chat template (Jinja) to use in place of the checkpoint's");
  app.add_option("--max-sequences", flags->max_sequences, "sequences that run together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--max-queue", flags->max_queue, "sequences that may wait; more get 429")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option(
      "--kv-memory", flags->kv_memory,
      "memory of the KV cache, e.g. \"2 GiB\"; default: what the contract leaves, or enough for every "
      "sequence but at most half of the free memory");
  app.add_option("--step-tokens", flags->step_tokens, "most tokens computed in one step")
      ->check(CLI::Range(16, 1 << 16))
      ->capture_default_str();
  app.add_option("--page-tokens", flags->page_tokens, "tokens of a KV page")
      ->check(CLI::IsMember({16, 32}))
      ->capture_default_str();
  app.add_flag("--no-prefix-cache", flags->no_prefix_cache, "compute every prompt from its first token");
  app.add_option("--drain-timeout", flags->drain_seconds, "seconds that running requests get after SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  add_watch_options(app, flags->watch);
  app.add_flag("--dry-run", flags->dry_run, "load, print the memory account and end");
  add_api_options(app, flags->api);
  app.add_flag("--log-requests", flags->log_requests, "log every request");
  return [flags] {
    const auto code = run_serve(*flags);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace assay
