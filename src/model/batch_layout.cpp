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
                         const Start& start) {
  if (n_rows == 0) return;
  const RowRun run{.slice = slice,
                   .first_token = first_token,
                   .n_rows = n_rows,
                   .first_position = source.first_position + first_token,
                   .first_row = n_rows_,
                   .output_row = start.row + first_token};
  in_slice_order_ = in_slice_order_ && run.output_row == run.first_row;
  runs_.push_back(run);
  n_rows_ += n_rows;
  const int unwanted = std::clamp(source.first_wanted - first_token, 0, n_rows);
  if (unwanted == n_rows) return;
  const WantedRun wanted{.slice = slice,
                         .n_rows = n_rows - unwanted,
                         .first_position = run.first_position + unwanted,
                         .first_row = run.first_row + unwanted,
                         .wanted_row = n_wanted_,
                         .output_row = start.wanted_row + first_token + unwanted - source.first_wanted};
  wanted_in_slice_order_ = wanted_in_slice_order_ && wanted.output_row == wanted.wanted_row;
  wanted_.push_back(wanted);
  n_wanted_ += wanted.n_rows;
}

void BatchLayout::append_group(std::span<const SequenceSlice> batch, bool prompts, bool others) {
  Start start;
  for (size_t i = 0; i < batch.size(); ++i) {
    const int first = prompts ? 0 : prompt_of(batch[i]);
    const int end = others ? length_of(batch[i]) : prompt_of(batch[i]);
    append(i, batch[i], first, end - first, start);
    start.row += length_of(batch[i]);
    start.wanted_row += batch[i].n_wanted();
  }
}

void BatchLayout::arrange(std::span<const SequenceSlice> batch, bool split_phases) {
  runs_.clear();
  wanted_.clear();
  n_rows_ = n_wanted_ = 0;
  in_slice_order_ = wanted_in_slice_order_ = true;
  append_group(batch, true, !split_phases);
  n_prompt_rows_ = n_rows_;
  n_wanted_prompt_ = n_wanted_;
  if (split_phases) append_group(batch, false, true);
}

}  // namespace assay
