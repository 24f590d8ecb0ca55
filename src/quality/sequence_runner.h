// Runs whole sequences through a model, piece by piece, and hands out the final hidden states. Internal to
// quality.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "kvcache/kv_pool.h"
#include "model/model.h"
#include "quality/text.h"

namespace assay {

class SequenceRunner {
 public:
  // Pages for sequences of up to `longest` tokens.
  static Result<SequenceRunner> create(Model& model, int longest);

  // Called once per piece: hidden is [n, n_embedding] for positions first .. first + n - 1.
  using OnPiece = std::function<Result<void>(int first, int n, std::span<const float> hidden)>;
  Result<void> run(const QualitySequence& sequence, const OnPiece& on_piece);

 private:
  SequenceRunner(Model& model, KvPool pool) : model_(&model), pool_(std::move(pool)) {}

  Model* model_;
  KvPool pool_;
  std::vector<int32_t> blocks_;
  std::vector<float> hidden_;
};

// Logits of consecutive positions in batches that fit the model: prompt rows and decode rows are projected
// apart, since their activation formats may differ. logits: [n, n_vocab].
void project_positions(Model& model, const QualitySequence& sequence, int first, int n,
                       std::span<const float> hidden, std::span<float> logits);

}  // namespace assay
