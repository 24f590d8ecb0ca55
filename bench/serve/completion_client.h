// Streamed completions as a client sees them: when each piece came, and how many tokens there were. Header
// only.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench/serve/server_process.h"
#include "http/client.h"

namespace assay::bench {

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct CompletionSpec {
  std::vector<int32_t> prompt;
  int max_tokens = 16;
  std::string key;  // or empty
};

struct CompletionTimes {
  int status = 0;
  double start = 0;
  std::vector<double> pieces;  // when each arrived
  int tokens = 0;              // by the answer's usage

  bool ok(int wanted) const { return status == 200 && tokens == wanted && !pieces.empty(); }
  double ttft() const { return pieces.front() - start; }
  void add_gaps(std::vector<double>& gaps) const {
    for (size_t i = 1; i < pieces.size(); ++i) gaps.push_back(pieces[i] - pieces[i - 1]);
  }
};

// Ordinary words of the vocabulary, different for every seed.
inline std::vector<int32_t> random_prompt(int64_t n, uint64_t seed) {
  Random random(seed, "prompt");
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(random.between(1000, 20000)));
  return ids;
}

inline CompletionTimes complete(const ServerProcess& server, const CompletionSpec& spec) {
  std::string ids;
  for (const int32_t id : spec.prompt) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  FetchRequest request{.url = server.url("/v1/completions"), .method = "POST"};
  request.headers.add("Content-Type", "application/json");
  if (!spec.key.empty()) request.headers.add("Authorization", "Bearer " + spec.key);
  request.body =
      R"({"model":"default","prompt":[)" + ids + R"(],"max_tokens":)" + std::to_string(spec.max_tokens) +
      R"(,"temperature":0.7,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}})";
  CompletionTimes times;
  times.start = now_seconds();
  const auto answer = fetch_events(request, [&](const SseEvent& event) {
    constexpr std::string_view kCount = "\"completion_tokens\":";
    const double at = now_seconds();
    if (const size_t found = event.data.find(kCount); found != std::string::npos)
      times.tokens = std::atoi(event.data.c_str() + found + kCount.size());
    if (event.data.find("\"text\":\"") != std::string::npos &&
        event.data.find("\"text\":\"\"") == std::string::npos)
      times.pieces.push_back(at);
    return true;
  });
  if (answer) times.status = answer->status;
  return times;
}

// Calls body(i) on n threads.
inline void in_parallel(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

inline double quantile_of(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

}  // namespace assay::bench
