// The step thread and what other threads may ask of it.
#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "engine/kv_budget.h"
#include "engine/request_check.h"
#include "engine/step_loop.h"

namespace assay {
namespace {

Result<void> check_config(const EngineConfig& config, const Model& model) {
  if (config.page_tokens != 16 && config.page_tokens != 32)
    return fail(ErrorCode::kInvalidArgument, "page_tokens", "expected 16 or 32, found {}",
                config.page_tokens);
  if (config.max_queue < 1)
    return fail(ErrorCode::kInvalidArgument, "max_queue", "expected a positive number, found {}",
                config.max_queue);
  for (const auto& [value, field] :
       {std::pair{config.itl_bound_seconds, "itl_bound"}, std::pair{config.patience_seconds, "patience"}})
    if (!(value >= 0))
      return fail(ErrorCode::kInvalidArgument, field, "expected no negative time, found {} s", value);
  if (config.step_token_budget > model.max_batch_tokens())
    return fail(ErrorCode::kInvalidArgument, "step_token_budget",
                "expected at most the {} tokens that the model was loaded for, found {}",
                model.max_batch_tokens(), config.step_token_budget);
  return {};
}

ScheduleConfig schedule_of(const EngineConfig& config, int64_t n_blocks) {
  ScheduleConfig schedule;
  schedule.step_token_budget = config.step_token_budget;
  schedule.max_running = config.max_sequences;
  schedule.page_tokens = config.page_tokens;
  schedule.total_blocks = n_blocks;
  schedule.batch_wait_seconds = config.batch_wait_seconds;
  // One page in a hundred stays free at admission, so that running sequences can grow a while before one is
  // preempted.
  schedule.watermark_blocks = n_blocks / 100;
  return schedule;
}

StepLoopOptions loop_options(const EngineConfig& config, int64_t n_blocks) {
  return {.schedule = schedule_of(config, n_blocks),
          .prefix_cache = config.prefix_cache,
          .itl_bound_seconds = config.itl_bound_seconds,
          .patience_seconds = config.patience_seconds};
}

class ThreadedEngine final : public Engine {
 public:
  ThreadedEngine(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, KvPool pool,
                 SwapSpace swap, const EngineConfig& config)
      : model_(std::move(model)),
        tokenizer_(std::move(tokenizer)),
        limits_{model_->config().n_vocab, model_->max_context()},
        max_live_(int64_t{config.max_sequences} + config.max_queue),
        loop_(*model_, *tokenizer_, std::move(pool), std::move(swap), loop_options(config, pool.n_blocks()),
              clock_),
        published_(loop_.stats()),
        page_map_(loop_.page_map()),
        thread_([this] { run(); }) {}

  ~ThreadedEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = draining_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  Result<RequestId> submit(GenerationRequest request, std::shared_ptr<StreamSink> sink) override {
    CHECK(sink != nullptr);
    ASSIGN_OR_RETURN(const int64_t longest, check_request(request, limits_));
    if (auto in_time = check_deadline(request); !in_time) return std::unexpected(in_time.error());
    const RequestId id = next_id_.fetch_add(1, std::memory_order_relaxed);
    auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(sink), *tokenizer_,
                                               loop_.pool(), longest, clock_.now_seconds());
    {
      const std::lock_guard lock(mutex_);
      if (draining_) return fail(ErrorCode::kUnavailable, "engine", "shutting down, no new requests");
      if (published_.running + published_.waiting + std::ssize(arrivals_) >= max_live_)
        return fail(ErrorCode::kResourceExhausted, "engine", "the queue is full: {} requests run or wait",
                    max_live_);
      arrivals_.push_back(std::move(sequence));
    }
    wake_.notify_all();
    return id;
  }

  void cancel(RequestId id) override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(id);
    }
    wake_.notify_all();
  }

  void drain(double timeout_seconds) override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    const auto done = [&] { return idle_ && arrivals_.empty(); };
    const auto limit = std::chrono::duration<double>(std::clamp(timeout_seconds, 0.0, 1e6));
    if (drained_.wait_for(lock, limit, done)) return;
    cancel_all_ = true;
    wake_.notify_all();
    drained_.wait(lock, done);
  }

  EngineStats stats() const override {
    const std::lock_guard lock(mutex_);
    EngineStats stats = published_;
    stats.waiting += std::ssize(arrivals_);
    stats.refused_deadline_total = refused_deadline_;
    stats.expected_queue_seconds = load_.expected_ttft_seconds(0, {});
    return stats;
  }

  std::vector<KvPageState> page_map() const override {
    map_wanted_ = true;
    const std::lock_guard lock(mutex_);
    return page_map_;
  }
  double expected_ttft_seconds(int64_t prompt_tokens, const RequestClass& share) const override {
    LoadSnapshot load;
    {
      const std::lock_guard lock(mutex_);
      load = load_;
      for (const auto& sequence : arrivals_) load.add(sequence->n_prompt, sequence->share);
    }
    return load.expected_ttft_seconds(prompt_tokens, share);
  }
  const Model& model() const override { return *model_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  int max_context() const override { return static_cast<int>(limits_.max_context); }

 private:
  void run() {
    double hold_seconds = 0;  // a batch is kept open
    while (take_orders(hold_seconds)) {
      hold_seconds = loop_.idle() ? 0 : loop_.step();
      publish();
    }
    loop_.cancel_all();
  }

  Result<void> check_deadline(const GenerationRequest& request) {
    if (!request.share.ttft_bound_seconds) return {};
    const double bound = *request.share.ttft_bound_seconds;
    const double expected = expected_ttft_seconds(std::ssize(request.prompt), request.share);
    if (expected <= bound) return {};
    const std::lock_guard lock(mutex_);
    ++refused_deadline_;
    return fail(ErrorCode::kUnavailable, "deadline",
                "the first token is expected in {:.2f} s, later than the bound of {:.2f} s", expected, bound);
  }

  // Waits until there is something to do; false when the engine is being destroyed.
  bool take_orders(double hold_seconds) {
    std::vector<std::unique_ptr<Sequence>> arrivals;
    std::vector<RequestId> cancelled;
    bool cancel_all = false;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      const auto ordered = [&] {
        return stopping_ || cancel_all_ || !arrivals_.empty() || !cancelled_.empty();
      };
      if (hold_seconds > 0)
        wake_.wait_for(lock, std::chrono::duration<double>(hold_seconds), ordered);
      else
        wake_.wait(lock, [&] { return ordered() || !loop_.idle(); });
      arrivals.swap(arrivals_);
      cancelled.swap(cancelled_);
      cancel_all = std::exchange(cancel_all_, false);
      stopping = stopping_;
      idle_ = false;
      published_.waiting += std::ssize(arrivals);  // until the next publish()
    }
    for (auto& sequence : arrivals) loop_.add(std::move(sequence));
    // Sinks are called without the lock: they may submit or cancel.
    for (const RequestId id : cancelled) loop_.cancel(id);
    if (cancel_all) loop_.cancel_all();
    return !stopping;
  }

  void publish() {
    EngineStats stats = loop_.stats();
    const bool idle = loop_.idle();
    // A look at every block is for whoever asked, and for the last time before nothing changes any more.
    std::vector<KvPageState> map;
    if (idle || map_wanted_.exchange(false)) map = loop_.page_map();
    LoadSnapshot load = loop_.load();
    const std::lock_guard lock(mutex_);
    load_ = std::move(load);
    published_ = std::move(stats);
    if (!map.empty()) page_map_ = std::move(map);
    idle_ = idle;
    if (idle_) drained_.notify_all();
  }

  const std::shared_ptr<Model> model_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const RequestLimits limits_;
  const int64_t max_live_;  // running and waiting
  const WallClock clock_;
  StepLoop loop_;  // the step thread's, except pool(), which never moves

  std::atomic<RequestId> next_id_{1};
  mutable std::atomic<bool> map_wanted_{false};

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::condition_variable drained_;
  std::vector<std::unique_ptr<Sequence>> arrivals_;
  std::vector<RequestId> cancelled_;
  EngineStats published_;
  std::vector<KvPageState> page_map_;
  LoadSnapshot load_;
  int64_t refused_deadline_ = 0;
  bool draining_ = false;
  bool cancel_all_ = false;
  bool stopping_ = false;
  bool idle_ = true;

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<Model> model,
                                               std::shared_ptr<const Tokenizer> tokenizer,
                                               EngineConfig config) {
  CHECK(model != nullptr && tokenizer != nullptr);
  RETURN_IF_ERROR(check_config(config, *model));
  RETURN_IF_ERROR(validate(schedule_of(config, 1)));
  if (tokenizer->vocab_size() > model->config().n_vocab)
    return fail(ErrorCode::kCorrupt, "vocabulary", "the tokenizer has {} tokens, the model only {}",
                tokenizer->vocab_size(), model->config().n_vocab);
  const KvLayout layout = model->kv_layout(config.page_tokens);
  ASSIGN_OR_RETURN(const int64_t n_blocks, kv_blocks_for({layout, config.max_sequences, model->max_context(),
                                                          config.kv_budget_bytes, available_memory_bytes()}));
  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(layout, n_blocks));
  ASSIGN_OR_RETURN(SwapSpace swap, SwapSpace::create(layout, config.swap_bytes));
  return std::make_unique<ThreadedEngine>(std::move(model), std::move(tokenizer), std::move(pool),
                                          std::move(swap), config);
}

}  // namespace assay
