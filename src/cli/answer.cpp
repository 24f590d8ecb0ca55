#include "cli/answer.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/units.h"

namespace assay {
namespace {

class ShowingSink final : public StreamSink {
 public:
  explicit ShowingSink(std::function<void(std::string_view)> show) : show_(std::move(show)) {}

  void on_token(const TokenEvent& event) override {
    if (answer_.tokens.empty()) answer_.ttft_seconds = watch_.seconds();
    answer_.tokens.push_back(event);
    add_text(event.text);
  }

  void on_finish(const Completion& completion) override {
    add_text(completion.trailing_text);
    answer_.completion = completion;
    answer_.total_seconds = watch_.seconds();
    const std::lock_guard lock(mutex_);
    finished_ = true;
    done_.notify_all();
  }

  // True when the answer is complete.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, time, [&] { return finished_; });
  }

  Answer take() { return std::move(answer_); }

 private:
  void add_text(const std::string& text) {
    answer_.text += text;
    if (!text.empty() && show_) show_(text);
  }

  std::function<void(std::string_view)> show_;
  Stopwatch watch_;
  Answer answer_;  // the engine's thread's until finished_
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
};

}  // namespace

double Answer::prefill_tokens_per_second() const {
  const int n_computed = completion.usage.prompt_tokens - completion.usage.cached_prompt_tokens;
  return completion.usage.prefill_seconds > 0 ? n_computed / completion.usage.prefill_seconds : 0;
}

double Answer::decode_tokens_per_second() const {
  const int n_gaps = completion.usage.completion_tokens - 1;
  return completion.usage.decode_seconds > 0 ? n_gaps / completion.usage.decode_seconds : 0;
}

Result<Answer> answer(Engine& engine, GenerationRequest request, const InterruptFlag& interrupt,
                      std::function<void(std::string_view)> show) {
  const auto sink = std::make_shared<ShowingSink>(std::move(show));
  ASSIGN_OR_RETURN(const RequestId id, engine.submit(std::move(request), sink));
  // A signal handler cannot wake a condition variable; 20 ms is below what a person notices.
  while (!sink->wait_for(std::chrono::milliseconds(20)))
    if (interrupt.raised()) engine.cancel(id);
  Answer done = sink->take();
  if (done.completion.error) return std::unexpected(*done.completion.error);
  return done;
}

std::string_view name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"stop", "length", "cancelled", "error"};
  static_assert(std::size(kNames) == static_cast<size_t>(FinishReason::kCount));
  return kNames[static_cast<size_t>(reason)];
}

std::string describe_timings(const Answer& answer) {
  const Usage& usage = answer.completion.usage;
  std::string text =
      fmt::format("{} tokens, {} to the first", usage.completion_tokens, format_seconds(answer.ttft_seconds));
  if (const double rate = answer.prefill_tokens_per_second(); rate > 0)
    text += fmt::format(", prefill {:.1f} tokens/s ({} new, {} cached)", rate,
                        usage.prompt_tokens - usage.cached_prompt_tokens, usage.cached_prompt_tokens);
  if (const double rate = answer.decode_tokens_per_second(); rate > 0)
    text += fmt::format(", decode {:.1f} tokens/s", rate);
  return text;
}

}  // namespace assay
