// What every bench prints: a table for people, or with --json one array of
// {"figure", "value", "unit", "bound", "holds", "samples", "how"}. Header only, no library.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace assay::bench {

enum class Better { kHigher, kLower };

struct Figure {
  std::string figure;
  double value = 0;
  std::string unit;
  std::optional<double> bound;
  Better better = Better::kHigher;
  int samples = 0;
  std::string how;

  bool holds() const { return !bound || (better == Better::kHigher ? value >= *bound : value <= *bound); }
};

// The inside of a JSON string. The texts are ours: printable, and control characters do not occur.
inline std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

inline bool wants_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

// Seconds of one call of `body`: the median over `samples` batches of calls, each at least 20 ms long.
template <class Body>
double median_seconds(int samples, Body&& body) {
  using Clock = std::chrono::steady_clock;
  const auto time = [&](long calls) {
    const auto start = Clock::now();
    for (long i = 0; i < calls; ++i) body();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  long calls = 1;
  while (time(calls) < 0.02 && calls < (1L << 30)) calls *= 2;
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) seconds.push_back(time(calls) / static_cast<double>(calls));
  std::ranges::nth_element(seconds, seconds.begin() + samples / 2);
  return seconds[static_cast<size_t>(samples / 2)];
}

// Returns the exit code: 0 when every bound holds.
inline int print(const std::vector<Figure>& figures, bool json) {
  bool all_hold = true;
  if (json) fmt::print("[");
  for (size_t i = 0; i < figures.size(); ++i) {
    const Figure& f = figures[i];
    all_hold = all_hold && f.holds();
    if (json) {
      const std::string bound = f.bound ? fmt::format("{:.6g}", *f.bound) : "null";
      fmt::print(
          "{}\n  {{\"figure\": \"{}\", \"value\": {:.6g}, \"unit\": \"{}\", \"bound\": {}, \"holds\": {}, "
          "\"samples\": {}, \"how\": \"{}\"}}",
          i == 0 ? "" : ",", escaped(f.figure), f.value, escaped(f.unit), bound, f.holds(), f.samples, escaped(f.how));
    } else {
      const std::string bound =
          f.bound ? fmt::format("{} {:.4g}{}", f.better == Better::kHigher ? ">=" : "<=", *f.bound,
                                f.holds() ? "" : "  BROKEN")
                  : std::string();
      fmt::print("{:58} {:>12.4g} {:<12} {}\n", f.figure, f.value, f.unit, bound);
    }
  }
  if (json) fmt::print("\n]\n");
  return all_hold ? 0 : 1;
}

}  // namespace assay::bench
