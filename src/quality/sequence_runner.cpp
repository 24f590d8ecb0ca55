#include "quality/sequence_runner.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace assay {

Result<SequenceRunner> SequenceRunner::create(Model& model, int longest) {
  const KvLayout layout = model.kv_layout();
  ASSIGN_OR_RETURN(KvPool pool,
                   KvPool::create(layout, std::max<int64_t>(1, ceil_div(longest, layout.page_tokens))));
  SequenceRunner runner(model, std::move(pool));
  while (auto block = runner.pool_.allocate()) runner.blocks_.push_back(*block);
  runner.hidden_.resize(static_cast<size_t>(model.max_batch_tokens()) *
                        static_cast<size_t>(model.config().n_embedding));
  return runner;
}

Result<void> SequenceRunner::run(const QualitySequence& sequence, const OnPiece& on_piece) {
  const int total = static_cast<int>(sequence.tokens.size());
  const auto width = static_cast<size_t>(model_->config().n_embedding);
  const int page_tokens = pool_.layout().page_tokens;
  for (int first = 0; first < total;) {
    const int n = std::min(total - first, model_->max_batch_tokens());
    const size_t pages = static_cast<size_t>(ceil_div(first + n, page_tokens));
    CHECK_OP(pages, <=, blocks_.size());
    const SequenceSlice slice{
        .tokens = std::span(sequence.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
        .first_position = first,
        .blocks = std::span(blocks_).first(pages),
        .n_prompt = std::clamp(sequence.n_prompt - first, 0, n)};
    const std::span<float> hidden = std::span(hidden_).first(static_cast<size_t>(n) * width);
    model_->forward({&slice, 1}, pool_, hidden);
    RETURN_IF_ERROR(on_piece(first, n, hidden));
    first += n;
  }
  return {};
}

void project_positions(Model& model, const QualitySequence& sequence, int first, int n,
                       std::span<const float> hidden, std::span<float> logits) {
  const auto width = static_cast<size_t>(model.config().n_embedding);
  const auto n_vocab = static_cast<size_t>(model.config().n_vocab);
  for (int done = 0; done < n;) {
    const bool in_prompt = first + done < sequence.n_prompt;
    const int limit = in_prompt ? std::min(n, sequence.n_prompt - first) : n;
    const int count = std::min(limit - done, model.max_batch_tokens());
    model.project(hidden.subspan(static_cast<size_t>(done) * width, static_cast<size_t>(count) * width),
                  count, in_prompt ? Phase::kPrefill : Phase::kDecode,
                  logits.subspan(static_cast<size_t>(done) * n_vocab, static_cast<size_t>(count) * n_vocab));
    done += count;
  }
}

}  // namespace assay
