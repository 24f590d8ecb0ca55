#include "tune/continuation.h"

#include <algorithm>
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

}  // namespace

Result<std::vector<std::vector<int32_t>>> continue_all(const LoadedModel& model,
                                                       const std::vector<std::vector<int32_t>>& prompts,
                                                       const ContinuationOptions& options) {
  EngineConfig config;
  config.step_token_budget = model.model()->max_batch_tokens();
  config.prefix_cache = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   Engine::create(model.model(), model.tokenizer(), config));

  const auto gate = std::make_shared<Gate>();
  gate->continuations.resize(prompts.size());
  std::vector<RequestId> ids;
  bool stopped = false;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerationRequest request;
    request.prompt = prompts[i];
    request.max_tokens = options.n_tokens;
    request.ignore_end_of_generation = options.past_the_end;
    request.sampling.temperature = 1.0F;
    request.sampling.top_p = 0.95F;
    request.sampling.seed = options.seed + i;
    auto id = engine->submit(std::move(request), std::make_shared<Collector>(gate, i));
    if (!id) return std::unexpected(id.error());
    ids.push_back(*id);
  }

  const double total = static_cast<double>(ids.size()) * options.n_tokens;
  std::unique_lock lock(gate->mutex);
  while (gate->finished < ids.size()) {
    gate->changed.wait_for(lock, std::chrono::milliseconds(200));
    const double share = std::min(1.0, static_cast<double>(gate->tokens) / total);
    lock.unlock();
    if (!stopped && options.progress && !options.progress(share)) {
      stopped = true;
      for (const RequestId id : ids) engine->cancel(id);
    }
    lock.lock();
  }
  if (stopped) return fail(ErrorCode::kCancelled, "continuation", "stopped");
  if (gate->error) return std::unexpected(*gate->error);
  return std::move(gate->continuations);
}

}  // namespace assay
