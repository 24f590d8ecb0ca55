// Mean negative log-likelihood of a window as llama-perplexity counts it: tokens after the middle are scored.
#pragma once

#include <cmath>

#include "model/model_runner.h"

namespace assay::test {

inline double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  const float top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - top));
  return std::log(sum) - (logits[static_cast<size_t>(token)] - top);
}

inline double window_nll(Model& model, std::span<const int32_t> tokens) {
  constexpr size_t kRows = 32;  // projected together
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  const auto n_vocab = static_cast<size_t>(model.config().n_vocab);
  Runner runner(model, static_cast<int64_t>(tokens.size()));
  const std::vector<float> hidden = runner.run_pieces(tokens, static_cast<size_t>(model.max_batch_tokens()));
  std::vector<float> logits(kRows * n_vocab);
  double total = 0;
  const size_t first = tokens.size() / 2, last = tokens.size() - 1;
  for (size_t at = first; at < last; at += kRows) {
    const size_t n = std::min(kRows, last - at);
    model.project(std::span(hidden).subspan(at * n_embedding, n * n_embedding), static_cast<int64_t>(n),
                  Phase::kPrefill, std::span(logits).first(n * n_vocab));
    for (size_t i = 0; i < n; ++i) {
      total += negative_log_likelihood(std::span(logits).subspan(i * n_vocab, n_vocab), tokens[at + i + 1]);
    }
  }
  return total / static_cast<double>(last - first);
}

}  // namespace assay::test
