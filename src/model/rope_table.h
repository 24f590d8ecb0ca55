// Cosines and sines of rotary position embeddings (Su et al., RoFormer, 2021) for every position, computed in
// double and rounded once. The angle of pair i at position p is p * frequency(i).
//
// Scalings: linear (Chen et al., 2023) divides every frequency; dynamic NTK raises theta for the context
// being served, once for all positions, as vLLM does (Hugging Face raises it while the sequence grows, which
// no cached key survives); YaRN (Peng et al., 2023, with the truncation of its reference code); llama3 (the
// rule of Llama 3.1's release); factors (the rope_freqs tensor, which is llama3's rule written out).
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned.h"
#include "base/error.h"
#include "model/model_config.h"

namespace assay {

// Radians per position for each pair. [rope_dim / 2]
std::vector<double> rope_frequencies(const ModelConfig& config, int max_context);

class RopeTable {
 public:
  // kResourceExhausted when the memory cannot be had.
  static Result<RopeTable> create(const ModelConfig& config, int max_context, int n_threads);

  // What create() will allocate.
  static uint64_t bytes_needed(const ModelConfig& config, int max_context);

  int n_pairs() const { return n_pairs_; }
  uint64_t bytes() const { return cosines_.size() + sines_.size(); }
  // Rows from `position` on. [max_context - position, n_pairs]
  const float* cosines(int64_t position) const { return cosines_.as<float>() + position * n_pairs_; }
  const float* sines(int64_t position) const { return sines_.as<float>() + position * n_pairs_; }

 private:
  int n_pairs_ = 0;
  AlignedBuffer cosines_, sines_;
};

}  // namespace assay
