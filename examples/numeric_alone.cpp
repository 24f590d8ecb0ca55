// What each number format costs a weight matrix: the signal-to-quantisation-noise ratio of a seeded normal
// tensor.
#include <fmt/core.h>

#include <vector>

#include "base/random.h"
#include "numeric/error_statistics.h"

int main() {
  constexpr int64_t kRows = 64;
  constexpr int64_t kCols = 1024;
  assay::Random random(1, "weights");
  std::vector<float> weights(kRows * kCols);
  for (float& weight : weights) weight = static_cast<float>(0.02 * random.normal());

  fmt::print("{} x {} weights, normal, standard deviation 0.02\n", kRows, kCols);
  fmt::print("{:<10}{:>10}{:>12}{:>11}\n", "format", "SQNR dB", "max error", "saturated");
  for (const char* text :
       {"f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8:32", "int8:128", "int4:32", "int4:128"}) {
    const auto format = assay::parse_weight_format(text);
    if (!format) {
      fmt::print(stderr, "{}\n", format.error().message());
      return 1;
    }
    const auto error = assay::round_trip_error(weights, kRows, kCols, *format);
    if (!error) {
      fmt::print(stderr, "{}\n", error.error().message());
      return 1;
    }
    fmt::print("{:<10}{:>10.1f}{:>12.2e}{:>11}\n", text, error->sqnr_db, error->max_absolute,
               error->saturated);
  }
  return 0;
}
