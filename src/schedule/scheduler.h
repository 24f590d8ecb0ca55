// Which sequences run in the next step, how many tokens of each, and who has to give pages back. Pure: state
// in, plan out; no clock, no memory, no requests. The engine and the simulator run this same code.
//
// Policy: continuous batching with chunked prefill (Yu et al. 2022, Orca; Agrawal et al. 2024,
// Sarathi-Serve).
//   1. Every running sequence with one token left to compute (a decode) gets it, in rank order.
//   2. Running sequences with more to compute (prompts, recomputation) share what is left of the token
//   budget.
//   3. Waiting sequences are admitted in rank order while slots, tokens and pages last; the first that does
//   not fit
//      stops the row, so nobody is overtaken.
// Pages are counted in whole blocks. Admission takes the blocks of every token known so far, so only decodes
// can run out of pages; then the running sequence of the highest rank gives its pages back and is recomputed
// later.
//
// Guarantees, given validate(config) and admissible() for every sequence:
//   the token budget and the free blocks are never exceeded; every running decode advances in every step in
//   which it is not preempted; the running sequence of the lowest rank is never preempted, so every sequence
//   finishes.
// Thread safety: pure functions. Cost: O(n log n) in the sequences passed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace assay {

struct ScheduleConfig {
  int64_t step_token_budget = 512;  // tokens of one step; >= max_running, so that no decode ever waits
  int64_t max_running = 16;
  int64_t page_tokens = 16;  // tokens of one block
  int64_t total_blocks = 0;
  int64_t watermark_blocks = 0;  // left free by admission while others run, so that they can grow
};

// A sequence as the scheduler sees it.
struct ScheduleSequence {
  uint64_t id = 0;
  // Served in ascending order; distinct. Today the arrival number, kept through preemption. Priorities and
  // tenant fairness will be other ways to compute it.
  uint64_t rank = 0;
  int64_t n_tokens = 0;    // prompt and generated so far
  int64_t n_computed = 0;  // of them, those in pages; < n_tokens
  // Running: blocks held; enough for n_tokens, or for n_tokens - 1 when one token is left to compute.
  // Waiting: blocks of the prefix cache that hold its first n_computed tokens and would be shared.
  int64_t n_blocks = 0;
  // Running: blocks that become free if it gives its pages back (those that nobody else holds); at least 1,
  // since the page being written is never shared. Waiting: those of n_blocks that nobody holds now, so that
  // sharing them takes them off the free blocks.
  int64_t n_sole_blocks = 0;
};

struct ScheduleState {
  std::span<const ScheduleSequence> running;
  std::span<const ScheduleSequence> waiting;  // may be only the lowest ranks of the queue
  int64_t free_blocks = 0;                    // unused, or kept only for the prefix cache
};

struct PlannedSlice {
  uint64_t id = 0;
  int64_t n_tokens = 0;    // to compute, after n_computed
  int64_t new_blocks = 0;  // to allocate first
  bool admitted = false;   // was waiting
};

struct StepPlan {
  std::vector<uint64_t> preempted;   // give all pages back and wait again; before anything else
  std::vector<PlannedSlice> slices;  // decodes, then prompts, then admitted ones
  int64_t n_tokens = 0;              // sum over slices
  int64_t taken_blocks = 0;          // new blocks and free ones that admitted sequences share
};

// kInvalidArgument, naming the field, for values that cannot keep the guarantees.
Result<void> validate(const ScheduleConfig& config);

// Whether a sequence of this length could run to its end alone. The caller refuses others, or they would wait
// forever. The last token of a sequence is never computed, only delivered, and needs no page.
bool admissible(int64_t longest_tokens, const ScheduleConfig& config);

// May be empty of slices although sequences wait (preemption freed the pages; plan again after applying it).
StepPlan plan_step(const ScheduleState& state, const ScheduleConfig& config);

}  // namespace assay
