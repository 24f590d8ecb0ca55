#include "tune/reference_text.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "engine/engine.h"

namespace assay {
namespace {

// What all continuations share: their tokens, how many are done, and a way to wait.
struct Gate {
  std::vector<std::vector<int32_t>> continuations;
  std::mutex mutex;
  std::condition_variable changed;
  size_t finished = 0;
  int64_t tokens = 0;
  std::optional<Error> error;
};

class Collector final : public StreamSink {
 public:
  Collector(std::shared_ptr<Gate> gate, size_t index) : gate_(std::move(gate)), index_(index) {}

  void on_token(const TokenEvent& event) override {
    const std::lock_guard lock(gate_->mutex);
    gate_->continuations[index_].push_back(event.token);
    ++gate_->tokens;
    gate_->changed.notify_one();
  }

  void on_finish(const Completion& completion) override {
    const std::lock_guard lock(gate_->mutex);
    ++gate_->finished;
    if (completion.error && !gate_->error) gate_->error = completion.error;
    gate_->changed.notify_one();
  }

 private:
  std::shared_ptr<Gate> gate_;
  size_t index_;
};

std::vector<int32_t> encode(const LoadedModel& model, const BuiltInPrompt& prompt) {
  if (prompt.kind == "chat" && model.has_template()) {
    if (const auto rendered = model.render({{"user", prompt.prompt}})) return model.encode_prompt(*rendered);
  }
  return model.tokenizer()->encode(prompt.prompt);
}

}  // namespace

Result<QualityText> continue_prompts(const LoadedModel& reference, uint64_t seed, int n_continue,
                                     const std::function<bool(double)>& progress) {
  EngineConfig config;
  config.step_token_budget = reference.model()->max_batch_tokens();
  config.prefix_cache = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   Engine::create(reference.model(), reference.tokenizer(), config));

  QualityText text{.name = "built-in prompts, continued by the reference", .sequences = {}};
  for (const BuiltInPrompt& prompt : built_in_prompts()) {
    QualitySequence sequence{.tokens = encode(reference, prompt), .n_prompt = 0, .first_scored = 1};
    sequence.n_prompt = static_cast<int>(sequence.tokens.size());
    if (sequence.n_prompt < 1 || sequence.n_prompt + n_continue > engine->max_context()) continue;
    text.sequences.push_back(std::move(sequence));
  }
  if (text.sequences.empty()) {
    return fail(ErrorCode::kInvalidArgument, reference.path().string(),
                "its context holds none of the prompts");
  }

  const auto gate = std::make_shared<Gate>();
  gate->continuations.resize(text.sequences.size());
  std::vector<RequestId> ids;
  bool stopped = false;
  for (size_t i = 0; i < text.sequences.size(); ++i) {
    GenerationRequest request;
    request.prompt = text.sequences[i].tokens;
    request.max_tokens = n_continue;
    request.sampling.temperature = 1.0F;
    request.sampling.top_p = 0.95F;
    request.sampling.seed = seed + i;
    auto id = engine->submit(std::move(request), std::make_shared<Collector>(gate, i));
    if (!id) return std::unexpected(id.error());
    ids.push_back(*id);
  }

  const double total = static_cast<double>(ids.size()) * n_continue;
  std::unique_lock lock(gate->mutex);
  while (gate->finished < ids.size()) {
    gate->changed.wait_for(lock, std::chrono::milliseconds(200));
    const double share = std::min(1.0, static_cast<double>(gate->tokens) / total);
    lock.unlock();
    if (!stopped && progress && !progress(share)) {
      stopped = true;
      for (const RequestId id : ids) engine->cancel(id);
    }
    lock.lock();
  }
  if (stopped) return fail(ErrorCode::kCancelled, "quality text", "stopped");
  if (gate->error) return std::unexpected(*gate->error);
  for (size_t i = 0; i < text.sequences.size(); ++i) {
    const std::vector<int32_t>& continuation = gate->continuations[i];
    text.sequences[i].tokens.insert(text.sequences[i].tokens.end(), continuation.begin(), continuation.end());
  }
  return text;
}

}  // namespace assay
