#include "engine/prompt_reader.h"

#include <algorithm>

#include "base/check.h"
#include "engine/softmax_weights.h"

namespace assay {

PromptReader::PromptReader(PromptOutput wanted, std::span<const int32_t> prompt)
    : wanted_(wanted), n_prompt_(std::ssize(prompt)) {
  if (wanted_.logprobs) tokens_.assign(prompt.begin(), prompt.end());
}

void PromptReader::pool(std::span<const float> hidden, int64_t n_embedding) {
  const auto width = static_cast<size_t>(n_embedding);
  if (wanted_.pooling == Pooling::kLast) sum_.clear();
  sum_.resize(width, 0.0);
  const size_t first = wanted_.pooling == Pooling::kLast ? hidden.size() - width : 0;
  for (size_t row = first; row < hidden.size(); row += width)
    for (size_t i = 0; i < width; ++i) sum_[i] += static_cast<double>(hidden[row + i]);
}

// Position p tells the probability of token p + 1; the last one's is the sampler's business.
Result<void> PromptReader::score(std::span<const float> hidden, int64_t n, const Projection& projection,
                                 SamplerWorkspace& workspace, std::vector<PromptTokenLogprob>& out) {
  const auto width = static_cast<size_t>(projection.n_embedding);
  const auto n_vocab = static_cast<size_t>(projection.n_vocab);
  const int64_t n_scored = std::min(n, n_prompt_ - 1 - next_);
  for (int64_t done = 0; done < n_scored;) {
    const int64_t rows = std::min(projection.max_rows, n_scored - done);
    const std::span<float> logits = projection.project(
        hidden.subspan(static_cast<size_t>(done) * width, static_cast<size_t>(rows) * width), rows);
    for (int64_t row = 0; row < rows; ++row) {
      const auto own = logits.subspan(static_cast<size_t>(row) * n_vocab, n_vocab);
      const LogitRange range = range_of(own);
      if (!range.finite)
        return fail(ErrorCode::kCorrupt, "logits",
                    "not finite after prompt token {}: the model overflows at this precision or its weights "
                    "are damaged",
                    next_ + done + row);
      const int32_t token = tokens_[static_cast<size_t>(next_ + done + row + 1)];
      Logprobs known = logprobs_of(own, range.max, token, wanted_.top_logprobs, workspace);
      out.push_back({token, known.chosen, std::move(known.top)});
    }
    done += rows;
  }
  return {};
}

Result<std::vector<PromptTokenLogprob>> PromptReader::read(std::span<const float> hidden, int64_t first,
                                                           const Projection& projection,
                                                           SamplerWorkspace& workspace) {
  const auto width = static_cast<size_t>(projection.n_embedding);
  CHECK_OP(first, <=, next_);  // nothing may be left out
  const int64_t end = std::min(first + static_cast<int64_t>(hidden.size() / width), n_prompt_);
  std::vector<PromptTokenLogprob> known;
  if (end <= next_) return known;
  const int64_t n = end - next_;
  hidden = hidden.subspan(static_cast<size_t>(next_ - first) * width, static_cast<size_t>(n) * width);
  if (wanted_.logprobs) RETURN_IF_ERROR(score(hidden, n, projection, workspace, known));
  if (wanted_.pooling != Pooling::kNone) pool(hidden, projection.n_embedding);
  next_ = end;
  return known;
}

std::vector<float> PromptReader::pooled() const {
  CHECK_OP(next_, ==, wanted_.wanted() ? n_prompt_ : next_);
  const double n = wanted_.pooling == Pooling::kMean ? static_cast<double>(n_prompt_) : 1;
  std::vector<float> result;
  result.reserve(sum_.size());
  for (const double sum : sum_) result.push_back(static_cast<float>(sum / n));
  return result;
}

}  // namespace assay
