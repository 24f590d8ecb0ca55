// The reference pass, recorded once and compared with any number of candidates.
//
// What is kept of the reference is the final hidden state of every scored position (n_embedding floats each):
// its logits are computed from them again, bit-identically, when a candidate is compared. So the reference
// runs once however many candidates there are, and memory is n_scored * n_embedding * 4 bytes instead of
// n_scored * n_vocab * 4. For the error by layer, the residual streams of the first `layer_tokens` tokens are
// kept too.
//
// Ownership: holds the reference model. Thread safety: one call at a time.
// Failure: kCancelled when progress says stop; kResourceExhausted when pages do not fit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "quality/text.h"
#include "records/quality_record.h"

namespace assay {

// Called with tokens done and in all; return false to stop.
using QualityProgress = std::function<bool(int64_t done, int64_t total)>;

class QualityReference {
 public:
  static Result<QualityReference> record(std::shared_ptr<Model> model, QualityText text,
                                         const QualityProgress& progress = {}, int layer_tokens = 512);

  // Runs the candidate over the same tokens. Both models must have the same vocabulary and width.
  Result<QualityRecord> compare(Model& candidate, const QualityProgress& progress = {});

  const QualityText& text() const { return text_; }

 private:
  QualityReference() = default;

  std::shared_ptr<Model> model_;
  QualityText text_;
  int layer_tokens_ = 0;
  std::vector<std::vector<float>> hidden_;  // by sequence: [scored positions, n_embedding]
  std::vector<std::vector<float>> layers_;  // by layer + 1: [kept tokens, n_embedding], in run order
};

// Perplexity alone, streamed: exp(mean negative log-likelihood) over the scored positions.
struct Perplexity {
  double value = 0;
  double standard_error = 0;  // of the value, from that of the mean
  int64_t n_scored = 0;
};
Result<Perplexity> measure_perplexity(Model& model, const QualityText& text,
                                      const QualityProgress& progress = {});

}  // namespace assay
