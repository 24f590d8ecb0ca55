// Quality of a candidate precision against the reference (the checkpoint computed in f32), over one text.
// KL is D(reference || candidate) of the next-token distributions, in nats per token.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numeric/precision.h"

namespace assay {

struct TextSource {
  std::string name;  // "built-in prompts, continued by the reference", or a file
  std::string hash;  // xxh64 of the token ids, hexadecimal
  int64_t n_sequences = 0;
  int64_t n_tokens = 0;  // tokens read
  int64_t n_scored = 0;  // positions whose next-token distribution was compared
};
BOOST_DESCRIBE_STRUCT(TextSource, (), (name, hash, n_sequences, n_tokens, n_scored))

struct LayerError {
  int layer = 0;              // -1: embedding; n_layers: after the final norm
  double relative_error = 0;  // sqrt(sum |h - h_ref|^2 / sum |h_ref|^2) over all tokens
};
BOOST_DESCRIBE_STRUCT(LayerError, (), (layer, relative_error))

struct QualityRecord {
  static constexpr const char* kKind = "quality";
  static constexpr int kVersion = 1;

  Precision reference;
  Precision candidate;
  TextSource text;
  double mean_kl = 0;
  double mean_kl_low = 0;  // 95 % interval of the mean, by bootstrap over sequences
  double mean_kl_high = 0;
  double median_kl = 0;
  double p99_kl = 0;
  double p999_kl = 0;
  double max_kl = 0;
  double top1_agreement = 0;  // share of positions with the same most likely token
  double top1_low = 0;        // 95 % Wilson interval
  double top1_high = 0;
  int top_k = 10;
  double top_k_overlap = 0;  // mean share of the reference's k best among the candidate's k best
  double reference_perplexity = 0;
  double perplexity = 0;
  double perplexity_increase = 0;  // perplexity / reference_perplexity - 1
  int64_t n_not_finite = 0;        // positions where the candidate gave NaN or infinity
  std::vector<LayerError> layers;
};
BOOST_DESCRIBE_STRUCT(QualityRecord, (),
                      (reference, candidate, text, mean_kl, mean_kl_low, mean_kl_high, median_kl, p99_kl,
                       p999_kl, max_kl, top1_agreement, top1_low, top1_high, top_k, top_k_overlap,
                       reference_perplexity, perplexity, perplexity_increase, n_not_finite, layers))

}  // namespace assay
