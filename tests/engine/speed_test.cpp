// What is run and how it is counted; how fast it is, is for the benches.
#include "engine/speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/stats.h"
#include "engine/fake_model.h"

namespace assay {
namespace {

using test::FakeModel;

TEST(MeasureSpeed, figures_are_medians_of_the_counted_runs) {
  FakeModel model({.max_context = 128, .max_batch_tokens = 16});
  SpeedOptions options{
      .prompt_tokens = 40, .context_tokens = 20, .decode_steps = 5, .batch = {1, 3}, .repetitions = 4};
  std::vector<double> shares;
  options.progress = [&](double share) {
    shares.push_back(share);
    return true;
  };
  const auto speed = measure_speed(model, options);
  ASSERT_TRUE(speed.has_value()) << speed.error().message();
  ASSERT_EQ(speed->decode.size(), 2U);
  EXPECT_EQ(speed->decode[1].n_sequences, 3);
  for (const SpeedFigure* figure : {&speed->prefill_tokens_per_second, &speed->decode[0].tokens_per_second,
                                    &speed->decode[1].tokens_per_second}) {
    ASSERT_EQ(figure->runs.size(), 4U);
    EXPECT_EQ(figure->median, median(figure->runs));
    EXPECT_EQ(figure->min, std::ranges::min(figure->runs));
    EXPECT_EQ(figure->max, std::ranges::max(figure->runs));
    EXPECT_GT(figure->min, 0);
  }
  // Five runs of each figure, one of them not counted: three prefill steps a run; contexts of 20 take two
  // each.
  EXPECT_EQ(model.n_forwards, 5 * 3 + (2 + 5 * 5) + (3 * 2 + 5 * 5));
  EXPECT_EQ(shares.size(), 15U);
  EXPECT_EQ(shares.back(), 1);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
}

TEST(MeasureSpeed, shapes_that_cannot_run_are_refused_by_field) {
  FakeModel model({.max_context = 128, .max_batch_tokens = 16});
  const auto expect_refused = [&](const SpeedOptions& options, const std::string& field) {
    const auto speed = measure_speed(model, options);
    ASSERT_FALSE(speed.has_value()) << field;
    EXPECT_EQ(speed.error().where, field);
  };
  const SpeedOptions good{.prompt_tokens = 4, .context_tokens = 4, .decode_steps = 2, .repetitions = 1};
  EXPECT_TRUE(measure_speed(model, good).has_value());
  const auto with = [&](auto field, auto value) {
    SpeedOptions options = good;
    options.*field = value;
    return options;
  };
  expect_refused(with(&SpeedOptions::prompt_tokens, 129), "prompt_tokens");
  expect_refused(with(&SpeedOptions::prompt_tokens, 0), "prompt_tokens");
  expect_refused(with(&SpeedOptions::context_tokens, 127), "context_tokens");
  expect_refused(with(&SpeedOptions::decode_steps, 0), "decode_steps");
  expect_refused(with(&SpeedOptions::batch, std::vector<int>{1, 17}), "batch");
  expect_refused(with(&SpeedOptions::batch, std::vector<int>{}), "batch");
  expect_refused(with(&SpeedOptions::repetitions, 0), "repetitions");
  expect_refused(with(&SpeedOptions::page_tokens, 7), "page_tokens");
}

TEST(MeasureSpeed, cancellation_stops_between_runs) {
  FakeModel model({.max_context = 128, .max_batch_tokens = 16});
  SpeedOptions options{.prompt_tokens = 16, .context_tokens = 16, .decode_steps = 2};
  options.progress = [](double share) { return share < 0.3; };
  const auto speed = measure_speed(model, options);
  ASSERT_FALSE(speed.has_value());
  EXPECT_EQ(speed.error().code, ErrorCode::kCancelled);
  EXPECT_LT(model.n_forwards, 8);
}

}  // namespace
}  // namespace assay
