// Where the tokens of a ragged batch stand among the rows of a step. When the phases have different
// activation formats, all prompt tokens come first and all sampled tokens after them, so that each group is
// prepared in its own format as one block; otherwise rows are in slice order. Inside a group, slices keep
// their order and their tokens stay together. Allocates in reserve() only. Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace assay {

// Consecutive tokens of one slice in one group.
struct RowRun {
  size_t slice = 0;
  int first_token = 0;  // within the slice
  int n_rows = 0;
  int first_position = 0;
  int64_t first_row = 0;   // among the rows of the step
  int64_t output_row = 0;  // among the rows of the batch, in slice order
};

// The wanted tokens of a run (SequenceSlice::first_wanted).
struct WantedRun {
  size_t slice = 0;
  int n_rows = 0;
  int first_position = 0;
  int64_t first_row = 0;   // among the rows of the step
  int64_t wanted_row = 0;  // among its wanted rows, in the same order
  int64_t output_row = 0;  // among the wanted rows of the batch, in slice order
};

class BatchLayout {
 public:
  void reserve(int max_tokens) {
    runs_.reserve(static_cast<size_t>(max_tokens));
    wanted_.reserve(static_cast<size_t>(max_tokens));
  }
  void arrange(std::span<const SequenceSlice> batch, bool split_phases);

  std::span<const RowRun> runs() const { return runs_; }
  std::span<const WantedRun> wanted() const { return wanted_; }
  int64_t n_rows() const { return n_rows_; }
  // Rows of the first group; all of them when phases are not split.
  int64_t n_prompt_rows() const { return n_prompt_rows_; }
  int64_t n_wanted() const { return n_wanted_; }
  int64_t n_wanted_prompt() const { return n_wanted_prompt_; }  // of the first group
  uint64_t bytes() const {
    return runs_.capacity() * sizeof(RowRun) + wanted_.capacity() * sizeof(WantedRun);
  }
  // True when rows are in slice order, so that outputs need no reordering.
  bool in_slice_order() const { return in_slice_order_; }
  bool wanted_in_slice_order() const { return wanted_in_slice_order_; }

 private:
  struct Start {
    int64_t row = 0, wanted_row = 0;  // of a slice, among all rows and all wanted rows
  };
  void append_group(std::span<const SequenceSlice> batch, bool prompts, bool others);
  void append(size_t slice, const SequenceSlice& source, int first_token, int n_rows, const Start& start);

  std::vector<RowRun> runs_;
  std::vector<WantedRun> wanted_;
  int64_t n_rows_ = 0;
  int64_t n_prompt_rows_ = 0;
  int64_t n_wanted_ = 0;
  int64_t n_wanted_prompt_ = 0;
  bool in_slice_order_ = true;
  bool wanted_in_slice_order_ = true;
};

}  // namespace assay
