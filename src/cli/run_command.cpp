// `assay run MODEL`: chat in the terminal, or one answer with --prompt.
#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cli/answer.h"
#include "cli/answer_json.h"
#include "cli/chat_terminal.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "engine/chat_session.h"
#include "engine/engine.h"

namespace assay {
namespace {

constexpr int kStepTokens = 512;  // of one prefill step
constexpr size_t kMostPromptBytes = size_t{64} << 20;

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt;
  bool prompt_given = false;
  std::string system;
  bool raw = false;
  bool json = false;
  bool timings = false;
};

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;) {
    text.append(buffer, n);
    if (text.size() > kMostPromptBytes)
      return fail(ErrorCode::kInvalidArgument, "--prompt -", "expected at most {} bytes on standard input",
                  kMostPromptBytes);
  }
  if (std::ferror(stdin)) return fail(ErrorCode::kIo, "--prompt -", "standard input cannot be read");
  return text;
}

ChatSession session_of(const LoadedModel& loaded, const Engine& engine, std::string system) {
  const auto encode = [&loaded](const std::vector<ChatMessage>& messages) -> Result<std::vector<int32_t>> {
    ASSIGN_OR_RETURN(const std::string text, loaded.render(messages));
    return loaded.encode_prompt(text);
  };
  // At least a quarter of the context is left to the answer.
  return {encode, int64_t{engine.max_context()} * 3 / 4, std::move(system)};
}

Result<std::vector<int32_t>> encode_prompt(const RunOptions& options, const LoadedModel& loaded) {
  std::string text = options.prompt;
  if (text == "-") {
    ASSIGN_OR_RETURN(text, read_standard_input());
  }
  if (options.raw) return loaded.tokenizer()->encode(text);
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", std::move(text)});
  ASSIGN_OR_RETURN(const std::string rendered, loaded.render(messages));
  return loaded.encode_prompt(rendered);
}

Result<int> answer_once(const RunOptions& options, const LoadedModel& loaded, Engine& engine,
                        double load_seconds) {
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, encode_prompt(options, loaded));
  const GenerationRequest request = request_of(options.sampling, std::move(prompt));
  const InterruptFlag interrupt;
  const auto show = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  ASSIGN_OR_RETURN(const Answer done, answer(engine, request, interrupt,
                                             options.json ? std::function<void(std::string_view)>() : show));
  if (options.json) {
    std::printf("%s\n", boost::json::serialize(to_json(done, {loaded, request, load_seconds})).c_str());
  } else {
    if (!done.text.ends_with('\n')) std::printf("\n");
    std::fflush(stdout);
    if (options.timings) std::fprintf(stderr, "%s\n", describe_timings(done).c_str());
  }
  return interrupt.raised() ? kExitInterrupted : kExitDone;
}

Result<int> run(const RunOptions& options) {
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(options.model, kStepTokens, true));
  if (!options.raw && !loaded.has_template())
    return fail(ErrorCode::kUnsupported, loaded.path().string(),
                "{}; use --raw --prompt TEXT for plain completion", loaded.template_error());
  EngineConfig config;
  config.max_sequences = 1;
  config.step_token_budget = kStepTokens;
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   Engine::create(loaded.model(), loaded.tokenizer(), config));
  const double load_seconds = watch.seconds();
  if (options.prompt_given) return answer_once(options, loaded, *engine, load_seconds);
  InterruptFlag interrupt;
  ChatSession session = session_of(loaded, *engine, options.system);
  std::fprintf(stderr, "%s, %s\n", loaded.model()->config().name.c_str(),
               describe_effective_precision(*loaded.model()).c_str());
  return chat_in_terminal(*engine, session, options.sampling, interrupt);
}

}  // namespace

Run configure_run_command(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("model", options->model.model, "a GGUF file, a safetensors directory or a short name")
      ->required();
  CLI::Option* prompt =
      app.add_option("--prompt", options->prompt, "answer this and end; \"-\" reads standard input");
  app.add_option("--system", options->system, "the system message");
  app.add_flag("--raw", options->raw, "continue the text of --prompt, without the chat template")
      ->needs(prompt);
  app.add_flag("--json", options->json, "print tokens, ids and timings as JSON")->needs(prompt);
  app.add_flag("--timings", options->timings, "print timings on standard error after the answer")
      ->needs(prompt);
  add_sampling_options(app, options->sampling);
  add_precision_options(app, options->model);
  return [options, prompt] {
    options->prompt_given = prompt->count() > 0;
    const Result<int> code = run(*options);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace assay
