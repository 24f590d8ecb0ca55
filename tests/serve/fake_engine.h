// An engine without a model: every sequence answers with a scripted text, one byte a token, from a real step
// thread. Tests hold it still, make it fail, and see what was asked and cancelled.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "tokenizer/toy_vocabulary.h"

namespace assay::testing {

// Bytes 0..255 and <|end|> (256).
inline std::shared_ptr<const Tokenizer> byte_tokenizer() {
  VocabSpec spec = tokenizer_test::toy_byte_level_spec();
  const int32_t end = tokenizer_test::add_special(spec, "<|end|>");
  spec.eos = end;
  spec.end_of_generation = {end};
  auto tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer) std::abort();
  return std::make_shared<const Tokenizer>(std::move(*tokenizer));
}

class FakeEngine final : public Engine {
 public:
  struct Options {
    std::string reply = "Hello, world.";
    int context = 200;
    size_t max_active = 1000;  // submit() beyond it: queue full
    int step_microseconds = 0;
    double expected_ttft_seconds = 0;  // submit() refuses a tighter bound
    std::string error_after_first;     // sequences end in this error after their first token
  };

  explicit FakeEngine(Options options) : options_(std::move(options)), tokenizer_(byte_tokenizer()) {
    thread_ = std::thread([this] { work(); });
  }
  ~FakeEngine() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
      held_ = false;
      for (auto& [id, sequence] : active_) sequence.cancelled = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<RequestId> submit(GenerationRequest request, std::shared_ptr<StreamSink> sink) override {
    const std::scoped_lock lock(mutex_);
    if (draining_) return fail(ErrorCode::kUnavailable, "engine", "draining");
    if (active_.size() >= options_.max_active)
      return fail(ErrorCode::kResourceExhausted, "engine", "queue is full");
    if (auto valid = validate(request); !valid) return std::unexpected(valid.error());
    if (request.share.ttft_bound_seconds &&
        *request.share.ttft_bound_seconds < options_.expected_ttft_seconds)
      return fail(ErrorCode::kUnavailable, "deadline", "the first token is expected in {} s",
                  options_.expected_ttft_seconds);
    const RequestId id = ++last_id_;
    submitted_.push_back(request);
    active_.emplace(id, Sequence{std::move(request), std::move(sink)});
    changed_.notify_all();
    return id;
  }

  void cancel(RequestId id) override {
    const std::scoped_lock lock(mutex_);
    cancelled_.insert(id);
    const auto found = active_.find(id);
    if (found != active_.end()) found->second.cancelled = true;
    changed_.notify_all();
  }

  void drain(double timeout_seconds) override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    changed_.wait_for(lock, std::chrono::duration<double>(timeout_seconds), [&] { return active_.empty(); });
    for (auto& [id, sequence] : active_) sequence.cancelled = true;
    held_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return active_.empty(); });
  }

  EngineStats stats() const override {
    const std::scoped_lock lock(mutex_);
    EngineStats stats;
    stats.running = static_cast<int64_t>(active_.size());
    stats.kv_blocks_total = 100;
    stats.kv_blocks_used = 10;
    stats.kv_blocks_cached = 5;
    stats.generated_tokens_total = generated_;
    stats.prompt_tokens_total = prompt_tokens_;
    stats.steps_total = steps_;
    return stats;
  }
  std::vector<KvPageState> page_map() const override {
    std::vector<KvPageState> map(100, KvPageState::kFree);
    std::fill_n(map.begin(), 10, KvPageState::kUsed);
    std::fill_n(map.begin() + 10, 5, KvPageState::kCached);
    return map;
  }
  double expected_ttft_seconds(int64_t, const RequestClass&) const override {
    return options_.expected_ttft_seconds;
  }
  const Model& model() const override { std::abort(); }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  int max_context() const override { return options_.context; }

  // --- for tests ---
  void hold() { set_held(true); }
  void go_on() { set_held(false); }
  std::vector<GenerationRequest> submitted() const {
    const std::scoped_lock lock(mutex_);
    return submitted_;
  }
  size_t cancelled() const {
    const std::scoped_lock lock(mutex_);
    return cancelled_.size();
  }
  size_t active() const {
    const std::scoped_lock lock(mutex_);
    return active_.size();
  }
  int64_t generated() const {
    const std::scoped_lock lock(mutex_);
    return generated_;
  }

 private:
  struct Sequence {
    GenerationRequest request;
    std::shared_ptr<StreamSink> sink;
    size_t next = 0;
    bool prompt_told = false;
    bool cancelled = false;
  };

  static Result<void> validate(const GenerationRequest& request) {
    if (request.prompt.empty()) return fail(ErrorCode::kInvalidArgument, "prompt", "is empty");
    return {};
  }

  void set_held(bool held) {
    const std::scoped_lock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  // One token of every active sequence, then the finished ones; sinks are called without the lock.
  void work() {
    while (true) {
      std::vector<std::pair<RequestId, Sequence*>> batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || (!active_.empty() && !held_) || has_cancelled(); });
        if (stop_ && active_.empty()) return;
        for (auto& [id, sequence] : active_) {
          if (!held_ || sequence.cancelled) batch.emplace_back(id, &sequence);
        }
        ++steps_;
      }
      for (auto& [id, sequence] : batch) step(id, *sequence);
      if (options_.step_microseconds > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(options_.step_microseconds));
      }
    }
  }

  bool has_cancelled() const {
    return std::any_of(active_.begin(), active_.end(),
                       [](const auto& entry) { return entry.second.cancelled; });
  }

  void step(RequestId id, Sequence& sequence) {
    bool cancelled = false;
    {
      const std::scoped_lock lock(mutex_);
      cancelled = sequence.cancelled;
    }
    if (!cancelled && sequence.next == 0) tell_prompt(sequence);
    const int limit = sequence.request.max_tokens < 0 ? 1 << 20 : sequence.request.max_tokens;
    if (cancelled) return finish(id, sequence, FinishReason::kCancelled);
    if (!options_.error_after_first.empty() && sequence.next > 0)
      return finish(id, sequence, FinishReason::kError);
    if (sequence.next >= options_.reply.size()) return finish(id, sequence, FinishReason::kStop);
    if (static_cast<int>(sequence.next) >= limit) return finish(id, sequence, FinishReason::kLength);
    const auto byte = static_cast<unsigned char>(options_.reply[sequence.next++]);
    TokenEvent event;
    event.token = byte;
    held_text_[id] += static_cast<char>(byte);
    if (!ends_inside_character(held_text_[id])) event.text = std::exchange(held_text_[id], {});
    if (sequence.request.sampling.logprobs) {
      event.logprob = -0.25F;
      for (int i = 0; i < sequence.request.sampling.top_logprobs; ++i) {
        event.top.push_back({(byte + i) % 256, -0.25F - static_cast<float>(i)});
      }
    }
    sequence.sink->on_token(event);
    const std::scoped_lock lock(mutex_);
    ++generated_;
  }

  static void tell_prompt(Sequence& sequence) {
    const std::vector<int32_t>& prompt = sequence.request.prompt;
    if (!sequence.request.prompt_output.logprobs || sequence.prompt_told) return;
    sequence.prompt_told = true;
    std::vector<PromptTokenLogprob> known;
    for (size_t i = 1; i < prompt.size(); ++i) {
      known.push_back({prompt[i], -0.5F, {}});
      for (int k = 0; k < sequence.request.prompt_output.top_logprobs; ++k)
        known.back().top.push_back({(prompt[i] + k) % 256, -0.5F - static_cast<float>(k)});
    }
    if (!known.empty()) sequence.sink->on_prompt(known);
  }

  static bool ends_inside_character(const std::string& text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return text.size() < length;
  }

  void finish(RequestId id, Sequence& sequence, FinishReason reason) {
    Completion completion;
    completion.reason = reason;
    completion.usage.prompt_tokens = static_cast<int>(sequence.request.prompt.size());
    completion.usage.completion_tokens = static_cast<int>(sequence.next);
    completion.usage.cached_prompt_tokens = completion.usage.prompt_tokens / 2;
    if (sequence.request.prompt_output.pooling != Pooling::kNone && reason != FinishReason::kError)
      completion.pooled = {3, 0, 4, static_cast<float>(sequence.request.prompt.size())};
    if (reason == FinishReason::kError) {
      completion.error = Error{ErrorCode::kInternal, "model", options_.error_after_first};
    }
    const std::shared_ptr<StreamSink> sink = sequence.sink;
    sink->on_finish(completion);
    const std::scoped_lock lock(mutex_);
    prompt_tokens_ += completion.usage.prompt_tokens;
    held_text_.erase(id);
    active_.erase(id);
    changed_.notify_all();
  }

  const Options options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Sequence> active_;
  std::map<RequestId, std::string> held_text_;  // step thread only
  std::set<RequestId> cancelled_;
  std::vector<GenerationRequest> submitted_;
  RequestId last_id_ = 0;
  int64_t generated_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t steps_ = 0;
  bool held_ = false;
  bool draining_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace assay::testing
