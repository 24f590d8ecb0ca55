#include "model/batch_layout.h"

#include <algorithm>

#include "base/check.h"

namespace assay {
namespace {

int length_of(const SequenceSlice& slice) {
  return static_cast<int>(slice.tokens.size());
}
int prompt_of(const SequenceSlice& slice) {
  return std::clamp(slice.n_prompt, 0, length_of(slice));
}

}  // namespace

void BatchLayout::append(size_t slice, const SequenceSlice& source, int first_token, int n_rows,
                         int64_t slice_row) {
  if (n_rows == 0) return;
  const RowRun run{.slice = slice,
                   .first_token = first_token,
                   .n_rows = n_rows,
                   .first_position = source.first_position + first_token,
                   .first_row = n_rows_,
                   .output_row = slice_row + first_token};
  in_slice_order_ = in_slice_order_ && run.output_row == run.first_row;
  runs_.push_back(run);
  n_rows_ += n_rows;
}

void BatchLayout::arrange(std::span<const SequenceSlice> batch, bool split_phases) {
  runs_.clear();
  n_rows_ = 0;
  in_slice_order_ = true;
  int64_t slice_row = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    append(i, batch[i], 0, split_phases ? prompt_of(batch[i]) : length_of(batch[i]), slice_row);
    slice_row += length_of(batch[i]);
  }
  n_prompt_rows_ = n_rows_;
  if (!split_phases) return;
  slice_row = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    append(i, batch[i], prompt_of(batch[i]), length_of(batch[i]) - prompt_of(batch[i]), slice_row);
    slice_row += length_of(batch[i]);
  }
}

}  // namespace assay
