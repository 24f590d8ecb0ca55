#include "schedule/step_time.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace assay {
namespace {

constexpr double kFixed = 0.004, kPerDecode = 0.0005, kPerPrompt = 0.0004;

StepTimeModel learned(double noise) {
  Random random(3, "step times");
  StepTimeModel model;
  for (int step = 0; step < 400; ++step) {
    const auto n_decodes = static_cast<int64_t>(random.between(1, 16));
    const int64_t n_prompt = step % 4 == 0 ? random.between(16, 200) : 0;
    const double seconds =
        kFixed + kPerDecode * static_cast<double>(n_decodes) + kPerPrompt * static_cast<double>(n_prompt);
    model.observe(n_decodes, n_prompt, seconds * random.uniform(1 - noise, 1 + noise));
  }
  return model;
}

TEST(StepTimeModel, learns_a_linear_machine) {
  const StepTimeModel exact = learned(0);
  for (const int64_t n : {1, 8, 16})
    EXPECT_NEAR(exact.decode_step_seconds(n), kFixed + kPerDecode * static_cast<double>(n), 1e-6);
  EXPECT_NEAR(exact.prompt_token_seconds(), kPerPrompt,
              0.02 * kPerPrompt);  // the first steps knew no decodes
  const StepTimeModel noisy = learned(0.1);
  EXPECT_NEAR(noisy.decode_step_seconds(8), kFixed + kPerDecode * 8, 0.05 * kFixed);
  EXPECT_NEAR(noisy.prompt_token_seconds(), kPerPrompt, 0.1 * kPerPrompt);
}

TEST(StepTimeModel, prompt_tokens_fill_the_bound_and_no_more) {
  const StepTimeModel model = learned(0);
  const double bound = 0.05;
  const int64_t n = model.prompt_tokens_within(bound, 8, 16, 512);
  const double step = kFixed + kPerDecode * 8 + kPerPrompt * static_cast<double>(n);
  EXPECT_LE(step, bound * 1.03);
  EXPECT_GE(step, bound * 0.95);
  EXPECT_EQ(model.prompt_tokens_within(0.001, 8, 16, 512), 16);
  EXPECT_EQ(model.prompt_tokens_within(10, 8, 16, 512), 512);
  EXPECT_EQ(model.prompt_tokens_within(bound, 0, 16, 512), 512);            // nobody waits
  EXPECT_EQ(StepTimeModel().prompt_tokens_within(bound, 8, 16, 512), 512);  // nothing known
}

TEST(StepTimeModel, follows_a_machine_that_becomes_slower) {
  StepTimeModel model = learned(0);
  for (int step = 0; step < 300; ++step)
    model.observe(step % 16 + 1, step % 3 == 0 ? 64 : 0,
                  3 * (kFixed + kPerDecode * (step % 16 + 1) + (step % 3 == 0 ? 64 * kPerPrompt : 0)));
  EXPECT_NEAR(model.decode_step_seconds(8), 3 * (kFixed + kPerDecode * 8), 0.1 * 3 * kFixed);
  EXPECT_NEAR(model.prompt_token_seconds(), 3 * kPerPrompt, 0.1 * 3 * kPerPrompt);
}

TEST(StepTimeModel, one_batch_size_and_nonsense_do_no_harm) {
  StepTimeModel model;
  model.observe(0, 0, 1);
  model.observe(4, 0, -1);
  EXPECT_EQ(model.decode_step_seconds(4), 0);
  for (int i = 0; i < 10; ++i) model.observe(4, 0, 0.01);
  EXPECT_NEAR(model.decode_step_seconds(4), 0.01, 1e-12);
  EXPECT_GT(model.decode_step_seconds(16), 0.01);
  EXPECT_GT(model.decode_step_seconds(1), 0);
}

TEST(ExpectedTtft, counts_what_is_served_before) {
  const StepTimeModel model = learned(0);
  const QueueForecast queue{.max_running = 4, .slot_seconds = 2, .bound_seconds = 0, .step_tokens = 512};
  const std::vector<double> service = {100, 50};
  const double per_prompt = model.prompt_token_seconds();
  EXPECT_NEAR(expected_ttft(100, 0, 0, {}, service, queue, model), 100 * per_prompt, 1e-9);
  // Two run and one waits: a slot is free for the fourth.
  std::vector<QueueRow> rows = {
      {.tenant = 0, .service_class = 0, .n_running = 2, .n_waiting = 1, .prompt_tokens_left = 300}};
  const double beside = per_prompt + model.decode_step_seconds(2) / 512;
  EXPECT_NEAR(expected_ttft(100, 0, 0, rows, service, queue, model), 400 * beside, 1e-9);
  rows[0].n_waiting = 3;  // two have to leave first
  EXPECT_NEAR(expected_ttft(100, 0, 0, rows, service, queue, model), 2 * 2.0 / 4 + 400 * beside, 1e-9);
  // A more urgent one, and one of a tenant that was served less, pass them.
  EXPECT_NEAR(expected_ttft(100, 0, -1, rows, service, queue, model), 100 * beside, 1e-9);
  EXPECT_NEAR(expected_ttft(100, 1, 0, rows, service, queue, model), 100 * beside, 1e-9);
  rows[0].tenant = 1;
  EXPECT_GT(expected_ttft(100, 0, 0, rows, service, queue, model), 1.0);
}

}  // namespace
}  // namespace assay
