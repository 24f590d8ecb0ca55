#include "serve/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ctime>
#include <utility>

#include "base/build_info.h"
#include "base/log.h"
#include "serve/answer_shape.h"
#include "serve/api_error.h"
#include "serve/generation.h"
#include "serve/openai_response.h"
#include "serve/serve_metrics.h"

namespace assay {
namespace {

namespace json = boost::json;
using ResponderPtr = std::shared_ptr<Responder>;

// Normalising may shorten a text before it is cut into tokens; hardly to a quarter.
constexpr size_t kNormalisingSlack = 4;
constexpr double kFlushSeconds = 5;  // for clients to take what was generated before the deadline

bool is_json_type(const HttpRequest& request) {
  const auto type = request.headers.find("Content-Type");
  if (!type) return true;
  std::string_view media = type->substr(0, type->find(';'));
  while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
  return equals_ignoring_case(media, "application/json");
}

class OpenAiServer final : public ApiServer {
 public:
  OpenAiServer(ServeConfig config, ServedModel model)
      : config_(std::move(config)),
        model_(std::move(model)),
        serve_metrics_(metrics_),
        grammars_(model_.engine->tokenizer()),
        created_(std::time(nullptr)) {
    const Tokenizer& tokenizer = model_.engine->tokenizer();
    config_.limits.n_vocab = tokenizer.vocab_size();
    size_t longest_token = 1;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      longest_token = std::max(longest_token, tokenizer.token_bytes(id).size());
    }
    hopeless_bytes_ = kNormalisingSlack * longest_token * static_cast<size_t>(model_.engine->max_context());
    serve_metrics_.describe(model_.name, model_.precision);
    metrics_.on_collect([this] { serve_metrics_.collect(model_.engine->stats()); });
  }

  ~OpenAiServer() override {
    // First the sockets: that cancels what runs and ends the callbacks into this object.
    http_.reset();
    // Then the sequences, whose sinks use the metrics.
    model_.engine->drain(0);
  }

  Result<void> open();
  void set_ready() override { ready_ = true; }
  uint16_t port() const override { return http_->port(); }
  std::string address() const override { return http_->address(); }
  MetricRegistry& metrics() override { return metrics_; }
  bool drain(double timeout_seconds) override;

 private:
  using Work = void (OpenAiServer::*)(const HttpRequest&, const ResponderPtr&);

  HttpServer::Route route(std::string_view method, std::string_view pattern, Work work) {
    return {std::string(method), std::string(pattern),
            [this, work](HttpRequest request, ResponderPtr responder) { (this->*work)(request, responder); }};
  }

  void list_models(const HttpRequest&, const ResponderPtr& responder);
  void show_model(const HttpRequest& request, const ResponderPtr& responder);
  void complete_chat(const HttpRequest& request, const ResponderPtr& responder);
  void complete_text(const HttpRequest& request, const ResponderPtr& responder);
  void show_health(const HttpRequest&, const ResponderPtr& responder);
  void show_live(const HttpRequest&, const ResponderPtr& responder);
  void show_ready(const HttpRequest&, const ResponderPtr& responder);
  void show_metrics(const HttpRequest&, const ResponderPtr& responder);
  void show_version(const HttpRequest&, const ResponderPtr& responder);

  std::optional<ApiError> refuse_now(const HttpRequest& request) const;
  bool serves(std::string_view name) const;
  ApiError unknown_model(std::string_view name) const;
  ApiResult<std::vector<int32_t>> encode(std::string_view text, bool rendered, std::string_view field) const;
  std::optional<ApiError> check_lengths(const std::vector<std::vector<int32_t>>& prompts,
                                        const GenerationOptions& options, std::string_view field) const;
  ApiResult<std::vector<int32_t>> chat_prompt(const ChatCompletionRequest& request,
                                              const AnswerShape& shape) const;
  ResponseIdentity identity(Endpoint endpoint, const GenerationOptions& options) const;
  ModelListing listing() const;
  std::string_view state_name() const { return draining_ ? "draining" : ready_ ? "ok" : "starting"; }

  ServeConfig config_;
  ServedModel model_;
  MetricRegistry metrics_;
  ServeMetrics serve_metrics_;
  GrammarStore grammars_;
  const int64_t created_;
  size_t hopeless_bytes_ = 0;  // a longer text cannot fit into the context
  std::atomic<bool> ready_{false};
  std::atomic<bool> draining_{false};
  std::unique_ptr<HttpServer> http_;
};

Result<void> OpenAiServer::open() {
  ServerConfig http = config_.http;
  http.make_error = [](int status, std::string_view message) {
    return to_response(http_failure(status, message));
  };
  http.on_access = [this, chained = config_.http.on_access](const AccessRecord& record) {
    serve_metrics_.count_request(record);
    log_debug("{} {} {} {} {:.3f}s{}", record.request_id, record.method, record.route, record.status,
              record.seconds, record.disconnected ? " client left" : "");
    if (chained) chained(record);
  };
  std::vector<HttpServer::Route> routes;
  routes.push_back(route("GET", "/v1/models", &OpenAiServer::list_models));
  routes.push_back(route("GET", "/v1/models/{id...}", &OpenAiServer::show_model));
  routes.push_back(route("POST", "/v1/chat/completions", &OpenAiServer::complete_chat));
  routes.push_back(route("POST", "/v1/completions", &OpenAiServer::complete_text));
  routes.push_back(route("GET", "/health", &OpenAiServer::show_health));
  routes.push_back(route("GET", "/health/live", &OpenAiServer::show_live));
  routes.push_back(route("GET", "/health/ready", &OpenAiServer::show_ready));
  routes.push_back(route("GET", "/metrics", &OpenAiServer::show_metrics));
  routes.push_back(route("GET", "/version", &OpenAiServer::show_version));
  ASSIGN_OR_RETURN(http_, HttpServer::start(std::move(http), std::move(routes)));
  return {};
}

bool OpenAiServer::drain(double timeout_seconds) {
  draining_ = true;
  http_->stop_accepting();
  model_.engine->drain(timeout_seconds);
  return http_->drain(std::min(timeout_seconds, kFlushSeconds));
}

// --- what is served ---

ModelListing OpenAiServer::listing() const {
  return {model_.name, created_, model_.engine->max_context(), model_.precision};
}

void OpenAiServer::list_models(const HttpRequest&, const ResponderPtr& responder) {
  const ModelListing only = listing();
  responder->respond(json_response(200, model_list({&only, 1})));
}

void OpenAiServer::show_model(const HttpRequest& request, const ResponderPtr& responder) {
  const std::string_view id = request.path_parameter("id");
  responder->respond(serves(id) ? json_response(200, model_object(listing()))
                                : to_response(unknown_model(id)));
}

void OpenAiServer::show_health(const HttpRequest&, const ResponderPtr& responder) {
  const int status = ready_ && !draining_ ? 200 : 503;
  responder->respond(json_response(
      status, json::serialize(json::object{{"status", json::string(state_name())}, {"model", model_.name}})));
}

void OpenAiServer::show_live(const HttpRequest&, const ResponderPtr& responder) {
  responder->respond(json_response(200, R"({"status":"live"})"));
}

void OpenAiServer::show_ready(const HttpRequest& request, const ResponderPtr& responder) {
  show_health(request, responder);
}

void OpenAiServer::show_metrics(const HttpRequest&, const ResponderPtr& responder) {
  responder->respond(text_response(200, metrics_.to_text(), kMetricsContentType));
}

void OpenAiServer::show_version(const HttpRequest&, const ResponderPtr& responder) {
  const BuildInfo build = build_info();
  responder->respond(
      json_response(200, json::serialize(json::object{{"version", json::string(build.version)},
                                                      {"commit", json::string(build.commit)},
                                                      {"compiler", json::string(build.compiler)},
                                                      {"build_type", json::string(build.build_type)}})));
}

// --- generation ---

std::optional<ApiError> OpenAiServer::refuse_now(const HttpRequest& request) const {
  if (draining_) return engine_failure({ErrorCode::kUnavailable, "", ""});
  if (!ready_) {
    return ApiError{.status = 503,
                    .message = "the server is starting; ask /health/ready",
                    .type = "server_error",
                    .code = "starting",
                    .retry_after_seconds = 1};
  }
  if (const auto encoding = request.headers.find("Content-Encoding"); encoding && *encoding != "identity") {
    return ApiError{.status = 415,
                    .message = fmt::format("Content-Encoding '{}' is not supported", encoding->substr(0, 40)),
                    .param = "Content-Encoding",
                    .code = "unsupported_content_encoding"};
  }
  if (!is_json_type(request)) {
    return ApiError{.status = 415,
                    .message = fmt::format("expected Content-Type application/json, found '{}'",
                                           request.headers.find("Content-Type")->substr(0, 80)),
                    .param = "Content-Type",
                    .code = "unsupported_content_type"};
  }
  return std::nullopt;
}

bool OpenAiServer::serves(std::string_view name) const {
  return name == model_.name ||
         std::find(model_.aliases.begin(), model_.aliases.end(), name) != model_.aliases.end();
}

ApiError OpenAiServer::unknown_model(std::string_view name) const {
  return {.status = 404,
          .message = fmt::format("the model '{}' does not exist here; this server has '{}'",
                                 name.substr(0, 200), model_.name),
          .param = "model",
          .code = "model_not_found"};
}

// Refuses what cannot fit before it keeps the I/O thread busy.
ApiResult<std::vector<int32_t>> OpenAiServer::encode(std::string_view text, bool rendered,
                                                     std::string_view field) const {
  if (text.size() > hopeless_bytes_) {
    return std::unexpected(
        ApiError{.status = 400,
                 .message = fmt::format("this model's context is {} tokens; {} bytes of {} "
                                        "cannot fit",
                                        model_.engine->max_context(), text.size(), field),
                 .param = std::string(field),
                 .code = "context_length_exceeded"});
  }
  return model_.engine->tokenizer().encode(text, {.add_bos = true, .parse_special = rendered});
}

std::optional<ApiError> OpenAiServer::check_lengths(const std::vector<std::vector<int32_t>>& prompts,
                                                    const GenerationOptions& options,
                                                    std::string_view field) const {
  const int64_t context = model_.engine->max_context();
  for (const std::vector<int32_t>& prompt : prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    if (length == 0) {
      return ApiError{.status = 400,
                      .message = fmt::format("{}: holds no tokens", field),
                      .param = std::string(field),
                      .code = "invalid_value"};
    }
    const int64_t wanted = options.max_tokens < 0 ? 1 : options.max_tokens;
    if (length + wanted <= context) continue;
    return ApiError{
        .status = 400,
        .message = fmt::format("this model's context is {} tokens; the request needs {} ({} in the {}, {} "
                               "for the answer)",
                               context, length + wanted, length, field, wanted),
        .param = std::string(field),
        .code = "context_length_exceeded"};
  }
  return std::nullopt;
}

ApiResult<std::vector<int32_t>> OpenAiServer::chat_prompt(const ChatCompletionRequest& request,
                                                          const AnswerShape& shape) const {
  if (!model_.render_chat) {
    return std::unexpected(
        ApiError{.status = 400,
                 .message = fmt::format("the model '{}' cannot chat: {}; use /v1/completions", model_.name,
                                        model_.no_chat_reason),
                 .param = "messages",
                 .code = "no_chat_template"});
  }
  const bool offered = request.tools.offered();
  const auto text =
      model_.render_chat(request.messages, offered ? request.tools.listed : boost::json::array());
  if (!text && text.error().code == ErrorCode::kInvalidArgument) {
    // The template's own verdict, e.g. that roles must alternate.
    return std::unexpected(ApiError{.status = 400,
                                    .message = "messages: " + text.error().what,
                                    .param = "messages",
                                    .code = "refused_by_chat_template"});
  }
  if (!text)
    return std::unexpected(engine_failure({ErrorCode::kInternal, "chat template", text.error().message()}));
  return encode(*text + shape.prompt_end, true, "messages");
}

ResponseIdentity OpenAiServer::identity(Endpoint endpoint, const GenerationOptions& options) const {
  const std::string unique = make_request_id().substr(4);
  return {.endpoint = endpoint,
          .id = (endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + unique,
          .created = std::time(nullptr),
          .model = model_.name,
          .fingerprint = fmt::format("assay {}, {}", build_info().version, model_.precision),
          .chunk_usage_null = options.include_usage};
}

void OpenAiServer::complete_chat(const HttpRequest& request, const ResponderPtr& responder) {
  if (const auto refusal = refuse_now(request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_chat_request(request.body, config_.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  GenerationOptions& options = parsed->options;
  if (!serves(options.model)) return responder->respond(to_response(unknown_model(options.model)));
  auto shape = shape_of_chat(*parsed, model_.tool_format, grammars_);
  if (!shape) return responder->respond(to_response(shape.error()));
  auto prompt = chat_prompt(*parsed, *shape);
  if (!prompt) return responder->respond(to_response(prompt.error()));
  std::vector<std::vector<int32_t>> prompts;
  prompts.push_back(std::move(*prompt));
  if (const auto refusal = check_lengths(prompts, options, "messages")) {
    return responder->respond(to_response(*refusal));
  }
  ResponseIdentity own = identity(Endpoint::kChat, options);
  Generation::start(*model_.engine, serve_metrics_,
                    {std::move(own), std::move(options), std::move(prompts), std::move(*shape)}, responder);
}

void OpenAiServer::complete_text(const HttpRequest& request, const ResponderPtr& responder) {
  if (const auto refusal = refuse_now(request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_completion_request(request.body, config_.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  GenerationOptions& options = parsed->options;
  if (!serves(options.model)) return responder->respond(to_response(unknown_model(options.model)));
  std::vector<std::vector<int32_t>> prompts;
  for (PromptInput& input : parsed->prompts) {
    if (auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(std::move(*ids));
    } else {
      auto encoded = encode(std::get<std::string>(input), false, "prompt");
      if (!encoded) return responder->respond(to_response(encoded.error()));
      prompts.push_back(std::move(*encoded));
    }
  }
  if (const auto refusal = check_lengths(prompts, options, "prompt")) {
    return responder->respond(to_response(*refusal));
  }
  auto shape = shape_of_completion(*parsed, grammars_);
  if (!shape) return responder->respond(to_response(shape.error()));
  ResponseIdentity own = identity(Endpoint::kCompletion, options);
  Generation::start(*model_.engine, serve_metrics_,
                    {std::move(own), std::move(options), std::move(prompts), std::move(*shape)}, responder);
}

}  // namespace

Result<std::unique_ptr<ApiServer>> ApiServer::start(ServeConfig config, ServedModel model) {
  auto server = std::make_unique<OpenAiServer>(std::move(config), std::move(model));
  RETURN_IF_ERROR(server->open());
  return server;
}

}  // namespace assay
