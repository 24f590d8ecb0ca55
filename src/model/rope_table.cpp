#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/thread_pool.h"

namespace assay {
namespace {

using std::numbers::pi;

double scale_llama3(const ModelConfig& config, double frequency) {
  const double original = config.rope_original_context;
  const double wavelength = 2 * pi / frequency;
  if (wavelength < original / config.rope_high_frequency_factor) return frequency;
  if (wavelength > original / config.rope_low_frequency_factor) return frequency / config.rope_factor;
  const double smooth = (original / wavelength - config.rope_low_frequency_factor) /
                        (config.rope_high_frequency_factor - config.rope_low_frequency_factor);
  return (1 - smooth) * frequency / config.rope_factor + smooth * frequency;
}

// The pair that turns `n_turns` times over the original context, as a real number.
double yarn_pair(const ModelConfig& config, double n_turns) {
  return config.rope_dim * std::log(config.rope_original_context / (n_turns * 2 * pi)) /
         (2 * std::log(config.rope_theta));
}

double scale_yarn(const ModelConfig& config, int pair, double frequency) {
  const double low = std::max(std::floor(yarn_pair(config, config.yarn_beta_fast)), 0.0);
  const double high = std::min(std::ceil(yarn_pair(config, config.yarn_beta_slow)), config.rope_dim - 1.0);
  const double interpolated = std::clamp((pair - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return frequency / config.rope_factor * interpolated + frequency * (1 - interpolated);
}

double dynamic_theta(const ModelConfig& config, int max_context) {
  if (max_context <= config.rope_original_context || config.rope_dim <= 2) return config.rope_theta;
  const double stretch =
      config.rope_factor * max_context / config.rope_original_context - (config.rope_factor - 1);
  return config.rope_theta * std::pow(stretch, config.rope_dim / (config.rope_dim - 2.0));
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config, int max_context) {
  const double theta =
      config.rope_scaling == RopeScaling::kDynamic ? dynamic_theta(config, max_context) : config.rope_theta;
  std::vector<double> frequencies(static_cast<size_t>(config.rope_dim / 2));
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const int index = static_cast<int>(pair);
    double frequency = std::pow(theta, -2.0 * index / config.rope_dim);
    switch (config.rope_scaling) {
      case RopeScaling::kLinear:
        frequency /= config.rope_factor;
        break;
      case RopeScaling::kYarn:
        frequency = scale_yarn(config, index, frequency);
        break;
      case RopeScaling::kLlama3:
        frequency = scale_llama3(config, frequency);
        break;
      case RopeScaling::kFactors:
        frequency /= double{config.rope_factors[pair]};
        break;
      case RopeScaling::kNone:
      case RopeScaling::kDynamic:
      case RopeScaling::kCount:
        break;
    }
    frequencies[pair] = frequency;
  }
  return frequencies;
}

uint64_t RopeTable::bytes_needed(const ModelConfig& config, int max_context) {
  return 2 * static_cast<uint64_t>(max_context) * static_cast<uint64_t>(config.rope_dim / 2) * sizeof(float);
}

Result<RopeTable> RopeTable::create(const ModelConfig& config, int max_context, int n_threads) {
  RopeTable table;
  table.n_pairs_ = config.rope_dim / 2;
  const size_t bytes = static_cast<size_t>(max_context) * static_cast<size_t>(table.n_pairs_) * sizeof(float);
  ASSIGN_OR_RETURN(table.cosines_, AlignedBuffer::allocate(bytes));
  ASSIGN_OR_RETURN(table.sines_, AlignedBuffer::allocate(bytes));
  const std::vector<double> frequencies = rope_frequencies(config, max_context);
  const double magnitude = config.rope_scaling == RopeScaling::kYarn ? config.yarn_attention_factor : 1.0;
  constexpr int64_t kPositionsPerTask = 256;
  ThreadPool pool(n_threads);
  pool.parallel_for((max_context + kPositionsPerTask - 1) / kPositionsPerTask, [&](int64_t task) {
    const int64_t end = std::min<int64_t>((task + 1) * kPositionsPerTask, max_context);
    for (int64_t position = task * kPositionsPerTask; position < end; ++position) {
      float* cosines = table.cosines_.as<float>() + position * table.n_pairs_;
      float* sines = table.sines_.as<float>() + position * table.n_pairs_;
      for (size_t pair = 0; pair < frequencies.size(); ++pair) {
        const double angle = static_cast<double>(position) * frequencies[pair];
        cosines[pair] = static_cast<float>(std::cos(angle) * magnitude);
        sines[pair] = static_cast<float>(std::sin(angle) * magnitude);
      }
    }
  });
  return table;
}

}  // namespace assay
