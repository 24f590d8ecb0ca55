// What the activations that enter the matrices of a model's layers look like over a text: mean |x| and E[x^2]
// of every input, and for GPTQ the sum of x x^T. Collected by running the model in f32.
//
// Ownership: plain values. Thread safety: one collect at a time (it runs the model). Memory: 4 n^2 bytes for
// each input of each layer whose products are kept, n its width.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace assay {

inline constexpr size_t kMatrixInputs = static_cast<size_t>(MatrixInput::kCount);

struct InputStatistics {
  int64_t n_rows = 0;                // tokens seen
  std::vector<float> mean_magnitude; // mean |x|, [n]
  std::vector<float> mean_square;    // E[x^2], [n]
  std::vector<float> gram;           // sum of x x^T, [n, n]; empty when not asked for
};

// By layer from `first_layer` on, and by input.
struct LayerStatistics {
  int first_layer = 0;
  std::vector<std::array<InputStatistics, kMatrixInputs>> layers;
};

// The bytes that collecting products for one layer takes.
uint64_t gram_bytes_per_layer(const ModelConfig& config);

// Runs `model` (f32 activations) over every sequence, each from its own start, cut to max_context, and keeps
// layers [first_layer, first_layer + n_layers). progress: share done; return false to stop (kCancelled).
// kInvalidArgument: no tokens. kResourceExhausted.
Result<LayerStatistics> collect_input_statistics(Model& model,
                                                 std::span<const std::vector<int32_t>> sequences,
                                                 int first_layer, int n_layers, bool with_products,
                                                 const std::function<bool(double)>& progress = {});

}  // namespace assay
