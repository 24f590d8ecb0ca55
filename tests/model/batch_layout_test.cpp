#include "model/batch_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace assay {
namespace {

// The wanted rows are those of the wanted tokens, in the order of the step's rows, and know their places.
void expect_wanted_rows(const BatchLayout& layout, std::span<const SequenceSlice> batch) {
  std::vector<int64_t> token_of_row(static_cast<size_t>(layout.n_rows()));
  std::vector<size_t> slice_of_row(token_of_row.size());
  for (const RowRun& run : layout.runs()) {
    for (int i = 0; i < run.n_rows; ++i) {
      token_of_row[static_cast<size_t>(run.first_row + i)] = run.first_token + i;
      slice_of_row[static_cast<size_t>(run.first_row + i)] = run.slice;
    }
  }
  std::vector<int64_t> expected;  // rows, in order
  int64_t n_prompt = 0;
  for (size_t row = 0; row < token_of_row.size(); ++row) {
    if (token_of_row[row] < batch[slice_of_row[row]].first_wanted) continue;
    expected.push_back(static_cast<int64_t>(row));
    n_prompt += static_cast<int64_t>(row) < layout.n_prompt_rows() ? 1 : 0;
  }
  EXPECT_EQ(layout.n_wanted(), std::ssize(expected));
  EXPECT_EQ(layout.n_wanted_prompt(), n_prompt);
  bool in_order = true;
  size_t at = 0;
  for (const WantedRun& run : layout.wanted()) {
    EXPECT_EQ(run.wanted_row, static_cast<int64_t>(at));
    const SequenceSlice& slice = batch[run.slice];
    int64_t before = 0;
    for (size_t i = 0; i < run.slice; ++i) before += batch[i].n_wanted();
    for (int i = 0; i < run.n_rows; ++i, ++at) {
      ASSERT_LT(at, expected.size());
      EXPECT_EQ(run.first_row + i, expected[at]);
      const int64_t token = token_of_row[static_cast<size_t>(expected[at])];
      EXPECT_EQ(slice_of_row[static_cast<size_t>(expected[at])], run.slice);
      EXPECT_EQ(run.first_position + i, slice.first_position + token);
      EXPECT_EQ(run.output_row + i, before + token - slice.first_wanted);
      in_order = in_order && run.output_row + i == static_cast<int64_t>(at);
    }
  }
  EXPECT_EQ(at, expected.size());
  EXPECT_EQ(layout.wanted_in_slice_order(), in_order);
}

// Every token gets one row and keeps its place in the output; prompt rows come first; runs agree with their
// slices.
TEST(BatchLayout, random_batches_keep_every_token_once) {
  Random random(3);
  BatchLayout layout;
  const std::vector<int32_t> tokens(64);
  for (int round = 0; round < 300; ++round) {
    const bool split = random.below(2) == 0;
    std::vector<SequenceSlice> batch;
    int64_t n_tokens = 0, n_prompt = 0;
    for (uint64_t i = random.below(6); i > 0; --i) {
      const int n = static_cast<int>(random.below(12)), prompt = static_cast<int>(random.between(-2, 14));
      batch.push_back({.tokens = std::span(tokens).first(static_cast<size_t>(n)),
                       .first_position = static_cast<int>(random.below(100)),
                       .n_prompt = prompt,
                       .first_wanted = static_cast<int>(random.between(0, n))});
      n_tokens += n;
      n_prompt += std::clamp(prompt, 0, n);
    }
    layout.arrange(batch, split);
    EXPECT_EQ(layout.n_rows(), n_tokens);
    EXPECT_EQ(layout.n_prompt_rows(), split ? n_prompt : n_tokens);
    std::set<int64_t> outputs;
    int64_t row = 0;
    bool in_order = true;
    for (const RowRun& run : layout.runs()) {
      EXPECT_EQ(run.first_row, row);
      EXPECT_GT(run.n_rows, 0);
      const SequenceSlice& slice = batch[run.slice];
      EXPECT_EQ(run.first_position, slice.first_position + run.first_token);
      int64_t before = 0;
      for (size_t i = 0; i < run.slice; ++i) before += static_cast<int64_t>(batch[i].tokens.size());
      for (int i = 0; i < run.n_rows; ++i, ++row) {
        EXPECT_EQ(run.output_row + i, before + run.first_token + i);
        EXPECT_TRUE(outputs.insert(run.output_row + i).second);
        in_order = in_order && run.output_row + i == row;
        const bool is_prompt = run.first_token + i < slice.n_prompt;
        EXPECT_TRUE(!split || is_prompt == (row < layout.n_prompt_rows()));
      }
    }
    EXPECT_EQ(row, n_tokens);
    EXPECT_EQ(layout.in_slice_order(), in_order);
    expect_wanted_rows(layout, batch);
  }
}

}  // namespace
}  // namespace assay
