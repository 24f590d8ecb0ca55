// Seeded random streams: the same seed and stream name give the same numbers on every machine and compiler
// (std distributions do not promise that); normal() and exponential() up to the last digit of the C library's
// log and cos. Generator: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64. Not for secrets.
// Thread safety: one Random per thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace assay {

class Random {
 public:
  explicit Random(uint64_t seed, std::string_view stream = {});

  uint64_t next();
  // Uniform in [0, 1), 53 bits.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Uniform in [0, n), without bias. n must be positive.
  uint64_t below(uint64_t n);
  // Uniform in [low, high], both ends included, whatever their distance. low must not be above high.
  int64_t between(int64_t low, int64_t high);
  // Standard normal, by Box-Muller.
  double normal();
  // Exponential with the given rate (mean 1/rate).
  double exponential(double rate);

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace assay
