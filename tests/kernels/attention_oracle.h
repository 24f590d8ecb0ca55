// Attention as a plain softmax in double precision over what the pages hold, with a derived error bound.
#pragma once

#include <algorithm>

#include "kernels/kv_sequence.h"

namespace assay::kernels_test {

struct Expected {
  std::vector<double> output;  // [head_dim]
  double bound;                // of every element
};

// Integer keys and values are met by 14-bit queries and weights (kernels/bodies/attention_*.inl): half a step is
// the largest / 16382 and the largest of a block / 32766.
inline double query_error(const Sequence& sequence, const float* query, int head_dim, double sum_of_keys) {
  if (!is_integer(sequence.view().key_format)) return 0;
  double largest = 0;
  for (int d = 0; d < head_dim; ++d) largest = std::max(largest, std::abs(static_cast<double>(query[d])));
  return largest / 16382 * sum_of_keys;
}

// Of the weighted mean, from the normalised weights of positions first, first + 1, ...
inline double weight_error(const Sequence& sequence, const std::vector<double>& weights, int first, int kv_head,
                    int head_dim) {
  const Format format = sequence.view().value_format;
  if (!is_integer(format)) return 0;
  const int group_dims = format == Format::kInt8 ? head_dim : kKvGroup;
  double largest_error = 0;
  for (int d = 0; d < head_dim; d += group_dims) {
    double error = 0, largest = 0;
    int n = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const int position = first + static_cast<int>(i);
      largest = std::max(largest, weights[i] * static_cast<double>(sequence.scale(false, position, kv_head, d)));
      ++n;
      if (position % kKeyBlock == kKeyBlock - 1 || i + 1 == weights.size()) {
        error += n * largest / 32766 * (format == Format::kInt8 ? 127 : 15);
        largest = n = 0;
      }
    }
    largest_error = std::max(largest_error, error);
  }
  return largest_error;
}

inline Expected expected_output(const AttentionShape& shape, const Sequence& sequence, const float* query, int head,
                         int position) {
  const int kv_head = head / (shape.n_heads / shape.n_kv_heads);
  const int first = shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
  std::vector<double> scores;
  double score_error = 0, largest_value = 0;
  const double scale = shape.scale;
  for (int p = first; p <= position; ++p) {
    double dot = 0, magnitude = 0, sum_of_keys = 0;
    for (int d = 0; d < shape.head_dim; ++d) {
      const double key = sequence.key(p, kv_head, d);
      const double term = static_cast<double>(query[d]) * key;
      dot += term;
      magnitude += std::abs(term);
      // int4's minimum is added to codes that round apart from it.
      const double minimum = std::abs(static_cast<double>(sequence.minimum(true, p, kv_head, d)));
      magnitude += std::abs(static_cast<double>(query[d])) * 2 * minimum;
      sum_of_keys += std::abs(key);
      largest_value = std::max({largest_value, std::abs(sequence.value(p, kv_head, d)),
                                std::abs(static_cast<double>(sequence.minimum(false, p, kv_head, d)))});
    }
    score_error = std::max(score_error, scale * ((shape.head_dim + 6) * kEpsilon * magnitude +
                                                 query_error(sequence, query, shape.head_dim, sum_of_keys)));
    double score = dot * scale;
    if (shape.soft_cap > 0) {
      const double cap = shape.soft_cap;
      score = cap * std::tanh(score / cap);
    }
    scores.push_back(score);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  Expected e{std::vector<double>(static_cast<size_t>(shape.head_dim)), 0};
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] /= sum;
    for (int d = 0; d < shape.head_dim; ++d) {
      e.output[static_cast<size_t>(d)] += scores[i] * sequence.value(first + static_cast<int>(i), kv_head, d);
    }
  }
  // A score is off by at most (head_dim + 6) eps times the sum of magnitudes (and, capped, by a few eps of
  // the cap); a weight by twice that relatively; a weighted mean of values by that times the largest value;
  // the sums add one eps per key and split.
  score_error += 8 * kEpsilon * static_cast<double>(shape.soft_cap);
  e.bound = largest_value * (4 * score_error + (static_cast<double>(scores.size()) + 40) * 2 * kEpsilon) +
            1.01 * weight_error(sequence, scores, first, kv_head, shape.head_dim);
  return e;
}

inline std::vector<float> attend(Backend& backend, const AttentionShape& shape, const Sequence& sequence,
                          const std::vector<float>& queries, int first, int n, int first_query_position = 0) {
  const int64_t width = int64_t{shape.n_heads} * shape.head_dim;
  std::vector<float> output(static_cast<size_t>(n * width), std::numeric_limits<float>::quiet_NaN());
  const AttentionTask task{queries.data() + (first - first_query_position) * width,
                           width,
                           output.data(),
                           width,
                           n,
                           first,
                           sequence.view()};
  backend.attention(shape, {&task, 1});
  return output;
}

}  // namespace assay::kernels_test
