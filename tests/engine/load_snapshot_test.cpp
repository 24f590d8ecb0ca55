#include "engine/load_snapshot.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

LoadSnapshot busy() {
  LoadSnapshot load;
  load.queue = {.max_running = 2, .slot_seconds = 1, .step_tokens = 100};
  for (int i = 0; i < 10; ++i) load.times.observe(0, 100, 0.1);  // a millisecond a token
  return load;
}

TEST(LoadSnapshot, arrivals_count_at_once) {
  LoadSnapshot load = busy();
  EXPECT_NEAR(load.expected_ttft_seconds(100, {}), 0.1, 1e-9);
  load.add(300, {});
  load.add(100, {.tenant = "other"});
  EXPECT_NEAR(load.expected_ttft_seconds(100, {}), 0.5 + 0.5, 1e-9);  // 500 tokens; three for two slots
  EXPECT_NEAR(load.expected_ttft_seconds(100, {.priority = -1}), 0.1, 1e-9);
}

TEST(LoadSnapshot, new_tenant_starts_level_with_the_others) {
  LoadSnapshot load = busy();
  load.tenants = {"a", "b"};
  load.tenant_service = {50, 70};
  load.count({.tenant = 0, .n_waiting = 1, .prompt_tokens_left = 200});
  load.count({.tenant = 1, .n_waiting = 1, .prompt_tokens_left = 400});
  // Level with a, before b.
  EXPECT_NEAR(load.expected_ttft_seconds(100, {.tenant = "new"}), 0.3, 1e-9);
  EXPECT_NEAR(load.expected_ttft_seconds(100, {.tenant = "a"}), 0.3, 1e-9);
}

}  // namespace
}  // namespace assay
