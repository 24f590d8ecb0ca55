// How far one next-token distribution is from another, from their logits.
//
//   KL(P || Q) = sum_i p_i (log p_i - log q_i) = sum_i p_i (a_i - b_i) - (lse(a) - lse(b))
//
// with p = softmax(a), q = softmax(b), lse = log-sum-exp (Kullback and Leibler 1951). Sums are in double.
// Pure functions; thread safe. Cost: one pass for the maxima, one with two exponentials per token of the
// vocabulary.
#pragma once

#include <cstdint>
#include <span>

namespace assay {

struct Divergence {
  double kl = 0;             // nats; at least 0 up to rounding
  double reference_nll = 0;  // -log p(next)
  double candidate_nll = 0;  // -log q(next)
  bool same_top = false;     // the most likely token is the same (ties: lowest id)
  double top_k_overlap = 0;  // share of the reference's k best that are among the candidate's k best
  bool finite = true;  // false: the candidate's logits hold NaN or infinity; the rest is then meaningless
};

// reference, candidate: [n_vocab]. `next` is the token that follows; top_k is clipped to n_vocab.
Divergence compare_logits(std::span<const float> reference, std::span<const float> candidate, int32_t next,
                          int top_k);

// -log softmax(logits)[next]; used for perplexity alone.
double negative_log_likelihood(std::span<const float> logits, int32_t next);

}  // namespace assay
