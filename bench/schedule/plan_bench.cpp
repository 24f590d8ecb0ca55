// How many steps a second the policy plans. The bound: planning for 256 sequences may take a hundredth of a
// 10 ms step.
#include <vector>

#include "bench/figures.h"
#include "schedule/scheduler.h"

namespace {

using namespace assay;

struct State {
  std::vector<ScheduleSequence> running, waiting;
  ScheduleConfig config;
  int64_t free_blocks = 0;
};

// A busy server: most decode, one in eight is still in its prompt, as many wait as run.
State busy_state(int64_t n_sequences) {
  State state;
  state.config = {.step_token_budget = 2 * n_sequences + 256,
                  .max_running = n_sequences,
                  .page_tokens = 16,
                  .total_blocks = 64 * n_sequences,
                  .watermark_blocks = n_sequences / 4};
  int64_t held = 0;
  for (int64_t i = 0; i < n_sequences; ++i) {
    const int64_t n_tokens = 100 + i * 37 % 500;
    const int64_t n_computed = i % 8 == 0 ? n_tokens / 2 : n_tokens - 1;
    const int64_t n_blocks = (n_tokens + 15) / 16;
    const auto id = static_cast<uint64_t>(i * 7919 % n_sequences);
    state.running.push_back({id, id, n_tokens, n_computed, n_blocks, n_blocks});
    state.waiting.push_back({id + 100000, id + 100000, n_tokens, 0, 0, 0});
    held += n_blocks;
  }
  state.free_blocks = state.config.total_blocks - held;
  return state;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::bench;
  constexpr int kSamples = 15;
  std::vector<Figure> figures;
  for (const int64_t n : {16, 64, 256}) {
    const State state = busy_state(n);
    int64_t planned = 0;
    const double seconds = median_seconds(kSamples, [&] {
      planned += plan_step({state.running, state.waiting, state.free_blocks}, state.config).n_tokens;
    });
    if (planned == 0) return 1;
    figures.push_back({fmt::format("steps planned, {} running and {} waiting sequences", n, n), 1 / seconds,
                       "steps/s", n == 256 ? std::optional<double>(10000) : std::nullopt, Better::kHigher,
                       kSamples,
                       "median of batches of at least 20 ms; one in eight sequences in its prompt"});
  }
  return print(figures, wants_json(argc, argv));
}
