// One HTTP generation request in flight: its sequences in the engine on one side, the answer on the other.
//
// Threads: start() runs on an I/O thread; tokens come from the engine's step thread, which is never blocked:
// pieces of a stream are handed to the responder's queue, whole answers are put together on the I/O thread. A
// client that leaves, or reads too slowly, cancels its sequences. The engine must outlive every generation
// that it has not finished.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/server.h"
#include "serve/answer_shape.h"
#include "serve/api_error.h"
#include "serve/openai_request.h"
#include "serve/openai_response.h"
#include "serve/request_watch.h"
#include "serve/serve_metrics.h"
#include "serve/tool_call_parser.h"
#include "tenants/tenant.h"

namespace assay {

struct GenerationSpec {
  ResponseIdentity identity;
  GenerationOptions options;
  std::vector<std::vector<int32_t>> prompts;  // each gives options.n choices
  AnswerShape shape;                          // of every choice
  std::vector<std::string> echo;              // of each prompt, what its choices begin with; empty: nothing
  RequestClass share;                         // how its sequences compete
  std::shared_ptr<Tenant::Admission> admission;
  Headers headers;  // of the answer, besides its own
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Submits every sequence, or answers with an error and submits none.
  static void start(Engine& engine, ServeMetrics& metrics, GenerationSpec spec,
                    std::shared_ptr<ObservedResponder> responder);

  Generation(Engine& engine, ServeMetrics& metrics, GenerationSpec spec,
             std::shared_ptr<ObservedResponder> responder);

 private:
  class Sink;

  struct Choice {
    RequestId id = 0;
    std::string text;                     // of a whole answer
    std::string echo;                     // the prompt, until it has been streamed
    std::vector<TokenLogprobs> logprobs;  // of a whole answer
    std::vector<TokenLogprobs> held;      // of tokens whose text is not final yet (stream)
    size_t characters = 0;                // of all tokens so far
    size_t held_offset = 0;               // characters before `held`
    int64_t tokens = 0;
    double last_token_at = 0;
    bool role_sent = false;
    bool finished = false;
    Completion completion;
    std::optional<ToolCallParser> parser;
    std::vector<ToolCallPiece> tool_calls;  // of a whole answer
  };

  void run();
  GenerationFacts facts() const;
  void begin_with_prompt();
  GenerationRequest request_of(size_t index) const;
  void on_prompt(size_t index, std::span<const PromptTokenLogprob> tokens);
  void on_token(size_t index, const TokenEvent& event);
  void on_finish(size_t index, const Completion& completion);
  void take_text(size_t index, std::string_view text, bool last);
  void stream_piece(size_t index, std::string_view text, std::span<const ToolCallPiece> calls,
                    std::string_view finish_reason);
  std::string_view finish_reason_of(const Choice& choice) const;
  ToolCallPiece piece_of(ToolEvent event) const;
  void keep(Choice& choice, TokenLogprobs named);
  void emit(std::string bytes);
  void end_stream();
  void respond_whole();
  void cancel_all();
  ApiError refusal_of(const Error& error, std::span<const int32_t> prompt) const;
  void count_use(size_t index);
  UsageTotals totals() const;
  bool wants_logprobs() const { return spec_.options.sampling.logprobs; }

  Engine& engine_;
  ServeMetrics& metrics_;
  std::shared_ptr<Tenant::Admission> admission_;  // until the last sequence has ended
  const GenerationSpec spec_;
  const std::shared_ptr<ObservedResponder> responder_;

  std::mutex mutex_;
  std::vector<Choice> choices_;
  size_t unfinished_ = 0;
  bool accepted_ = false;  // every sequence was submitted; until then `early_` holds what is to be sent
  bool refused_ = false;
  std::string early_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace assay
