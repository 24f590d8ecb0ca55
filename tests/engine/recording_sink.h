// What a sink was told, for comparison with an answer.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace assay::test {

class RecordingSink final : public StreamSink {
 public:
  void on_token(const TokenEvent& event) override {
    EXPECT_FALSE(finished_.load()) << "a token after the end";
    events.push_back(event);
    text += event.text;
    if (on_each_token) on_each_token();
  }

  void on_prompt(std::span<const PromptTokenLogprob> tokens) override {
    EXPECT_TRUE(events.empty()) << "the prompt after a token";
    prompt.insert(prompt.end(), tokens.begin(), tokens.end());
  }

  void on_finish(const Completion& done) override {
    EXPECT_FALSE(finished_.load()) << "a second end";
    completion = done;
    text += done.trailing_text;
    const std::lock_guard lock(mutex_);
    finished_ = true;
    done_.notify_all();
  }

  bool finished() const { return finished_; }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return finished_.load(); });
  }

  std::vector<int32_t> tokens() const {
    std::vector<int32_t> ids;
    for (const TokenEvent& event : events) ids.push_back(event.token);
    return ids;
  }

  // Read after the end.
  std::vector<TokenEvent> events;
  std::vector<PromptTokenLogprob> prompt;
  std::string text;
  Completion completion;
  std::function<void()> on_each_token;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::atomic<bool> finished_ = false;
};

}  // namespace assay::test
