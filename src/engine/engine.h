// Sequences in, streams of tokens out. One step thread runs: plan (schedule), one ragged batch (model),
// sample, deliver. Requests are batched continuously; prompts are prefilled in chunks beside running decodes;
// pages come from a fixed KV budget; prefix pages are shared.
//
// Thread safety: submit(), cancel(), stats() and drain() may be called from any thread. StreamSink is called
// from the step thread and must not block; the engine holds it until on_finish. Failure: submit() refuses
// what can never run (empty prompt, prompt longer than the context, bad parameters) and kUnavailable while
// draining or kResourceExhausted when the queue is full.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine_stats.h"
#include "engine/prompt_output.h"
#include "engine/request_class.h"
#include "engine/sampling.h"
#include "engine/token_constraint.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace assay {

struct EngineConfig {
  uint64_t kv_budget_bytes =
      0;                   // 0: enough for max_sequences at the context length, at most half of free memory
  int page_tokens = 16;    // 16 or 32
  int max_sequences = 16;  // running together
  int max_queue = 1024;    // waiting
  int step_token_budget = 512;  // tokens of one step, prefill chunks included; <= model's max_batch_tokens
  bool prefix_cache = true;
  // What a stream's next token may wait for the prompts of others: prompts are cut into chunks that keep
  // steps within it. 0: 50 ms, or two decode steps where that is more.
  double itl_bound_seconds = 0;
  double batch_wait_seconds = 0;  // an idle engine waits so long for further requests to start together
  double patience_seconds = 30;   // a request that waits longer is served with the most urgent ones
  uint64_t swap_bytes = 0;        // beside the KV budget: for pages of sequences that have to give theirs up
};

struct GenerationRequest {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  // -1: up to the context length; 0 (only with a prompt_output): ends with kLength after the prompt.
  int max_tokens = -1;
  std::vector<std::string> stop;  // generation ends before the first of these texts; at most 16, none empty
  bool ignore_end_of_generation = false;
  bool keep_special = false;  // deliver the text of special tokens too
  // Which tokens may follow; of this request alone. None: all.
  std::shared_ptr<TokenConstraint> constraint;
  RequestClass share;
  PromptOutput prompt_output;
};

struct TokenEvent {
  int32_t token = 0;
  std::string text;  // text that became final; may be empty (incomplete UTF-8, possible stop string)
  std::optional<float> logprob;
  std::vector<TokenLogprob> top;  // best first
};

enum class FinishReason { kStop, kLength, kCancelled, kError, kCount };

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;  // sampled, with the end-of-generation token, which is not delivered as an event
  int cached_prompt_tokens = 0;  // taken from the prefix cache
  double queue_seconds = 0;
  double prefill_seconds = 0;  // from first scheduled to first token
  double decode_seconds = 0;   // from first token to last
};

struct Completion {
  FinishReason reason = FinishReason::kStop;
  std::string trailing_text;  // text held back that turned out not to be a stop string
  std::string stop_text;      // the stop string that matched, or empty
  Usage usage;
  std::optional<Error> error;  // set when reason is kError
  std::vector<float> pooled;   // [n_embedding], as prompt_output.pooling asked; not normalised
};

class StreamSink {
 public:
  virtual ~StreamSink() = default;
  // As prompt_output.logprobs asked: every prompt token but the first, in order, in pieces, before any token.
  virtual void on_prompt(std::span<const PromptTokenLogprob>) {}
  virtual void on_token(const TokenEvent& event) = 0;
  virtual void on_finish(const Completion& completion) = 0;  // exactly once, last
};

using RequestId = uint64_t;

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<Model> model,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                EngineConfig config = {});
  virtual ~Engine() = default;  // cancels what runs and joins the step thread

  virtual Result<RequestId> submit(GenerationRequest request, std::shared_ptr<StreamSink> sink) = 0;
  virtual void cancel(RequestId id) = 0;  // unknown or finished ids are ignored
  // No new requests; returns when the running ones are done or the time is over (then they are cancelled).
  virtual void drain(double timeout_seconds) = 0;

  virtual EngineStats stats() const = 0;
  virtual std::vector<KvPageState> page_map() const = 0;  // [kv_blocks_total], as of a step or two ago
  // Forecast from the queue and the measured speed: from now to the first token.
  virtual double expected_ttft_seconds(int64_t prompt_tokens, const RequestClass& share) const = 0;
  virtual const Model& model() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual int max_context() const = 0;
};

// Runs one request to its end and waits for it. For tools and tests.
struct GeneratedText {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;             // when asked for
  std::vector<PromptTokenLogprob> prompt;  // when asked for
  std::string text;
  Completion completion;
};
Result<GeneratedText> generate(Engine& engine, GenerationRequest request);

}  // namespace assay
