#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.h"

namespace assay {
namespace {

class CollectingSink final : public StreamSink {
 public:
  void on_token(const TokenEvent& event) override {
    text_.tokens.push_back(event.token);
    if (event.logprob) text_.logprobs.push_back(*event.logprob);
    text_.text += event.text;
  }

  void on_prompt(std::span<const PromptTokenLogprob> tokens) override {
    text_.prompt.insert(text_.prompt.end(), tokens.begin(), tokens.end());
  }

  void on_finish(const Completion& completion) override {
    const std::lock_guard lock(mutex_);
    text_.text += completion.trailing_text;
    text_.completion = completion;
    finished_ = true;
    done_.notify_all();
  }

  GeneratedText wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return finished_; });
    return std::move(text_);
  }

 private:
  GeneratedText text_;  // the step thread's until finished_
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
};

}  // namespace

Result<GeneratedText> generate(Engine& engine, GenerationRequest request) {
  const auto sink = std::make_shared<CollectingSink>();
  RETURN_IF_ERROR(engine.submit(std::move(request), sink));
  GeneratedText text = sink->wait();
  if (text.completion.error) return std::unexpected(*text.completion.error);
  return text;
}

}  // namespace assay
