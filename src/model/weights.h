// Every weight of a model of the llama family, loaded at a precision.
// Ownership: owns copies; the checkpoint may be closed. Thread safety: immutable after load().
// Cost of load(): one pass over the file, spread over the threads; beside the weights themselves it holds,
// per thread, one tensor decoded to f32.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "model/model.h"
#include "model/model_config.h"
#include "numeric/precision.h"

namespace assay {

// Biases may be empty: none.
struct LayerWeights {
  std::vector<float> attention_norm;  // [n_embedding]
  PackedMatrix query;                 // [n_heads * head_dim, n_embedding]
  PackedMatrix key, value;            // [n_kv_heads * head_dim, n_embedding]
  std::vector<float> query_bias, key_bias, value_bias;
  PackedMatrix attention_output;  // [n_embedding, n_heads * head_dim]
  std::vector<float> attention_output_bias;
  std::vector<float> feed_forward_norm;  // [n_embedding]
  PackedMatrix gate, up;                 // [n_feed_forward, n_embedding]
  std::vector<float> gate_bias, up_bias;
  PackedMatrix down;  // [n_embedding, n_feed_forward]
  std::vector<float> down_bias;
};

struct ModelWeights {
  PackedMatrix embedding;  // [n_vocab, n_embedding]
  // Empty when the embedding serves as output projection too: tied, and both at one format.
  PackedMatrix own_output;         // [n_vocab, n_embedding]
  std::vector<float> output_norm;  // [n_embedding]
  std::vector<LayerWeights> layers;
  std::vector<EffectiveFormat> formats;  // what was loaded, in order of execution

  const PackedMatrix& output() const { return own_output.n_outputs > 0 ? own_output : embedding; }
  uint64_t bytes() const;

  // kCorrupt: a tensor is missing, has a wrong shape, or holds NaN or infinity; kUnsupported: a tensor that
  // this architecture does not use would be left out; kCancelled: `progress` (called on this thread, share
  // done) said no.
  // kResourceExhausted: weights and `other_bytes`, what the caller will allocate, exceed the available
  // memory. kInvalidArgument: `precision` needs calibrated weights that `calibrated` does not hold; what it holds
  // is moved out.
  static Result<ModelWeights> load(const Checkpoint& checkpoint, const ModelConfig& config,
                                   const Precision& precision, int n_threads, uint64_t other_bytes,
                                   const std::function<bool(double)>& progress,
                                   CalibratedWeights* calibrated = nullptr);
};

}  // namespace assay
