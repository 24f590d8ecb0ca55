// Collects what a request wants to know of its prompt (prompt_output.h) from the hidden states of its tokens,
// chunk by chunk. Survives preemption: positions that were read are not read again, so the result does not
// depend on how often the prompt was computed or how it was cut.
// Ownership: copies the tokens it needs to know. Thread safety: the step thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/logprobs.h"
#include "engine/prompt_output.h"

namespace assay {

class PromptReader {
 public:
  // hidden [n, n_embedding] -> logits [n, n_vocab], in the prefill phase; n <= max_rows.
  struct Projection {
    std::function<std::span<float>(std::span<const float> hidden, int64_t n)> project;
    int64_t max_rows = 0;
    int64_t n_embedding = 0;
    int64_t n_vocab = 0;
  };

  PromptReader(PromptOutput wanted, std::span<const int32_t> prompt);

  // Whether positions from `position` on are still to be read.
  bool wants(int64_t position) const { return wanted_.wanted() && position < n_prompt_ && next_ < n_prompt_; }
  // hidden: [n, n_embedding], the states of positions [first, first + n). Returns the log-probabilities that
  // became known. kCorrupt when logits are not finite.
  Result<std::vector<PromptTokenLogprob>> read(std::span<const float> hidden, int64_t first,
                                               const Projection& projection, SamplerWorkspace& workspace);
  // [n_embedding], after the last position was read; empty when no pooling was asked for.
  std::vector<float> pooled() const;

 private:
  void pool(std::span<const float> hidden, int64_t n_embedding);
  Result<void> score(std::span<const float> hidden, int64_t n, const Projection& projection,
                     SamplerWorkspace& workspace, std::vector<PromptTokenLogprob>& out);

  const PromptOutput wanted_;
  const int64_t n_prompt_;
  std::vector<int32_t> tokens_;  // [n_prompt], when logprobs are wanted
  int64_t next_ = 0;             // the first position that was not read
  std::vector<double> sum_;      // [n_embedding]
};

}  // namespace assay
