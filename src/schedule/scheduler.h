// Which sequences run in the next step, how many tokens of each, and who has to give way. Pure: state in,
// plan out; no clock, no memory, no requests. The engine and the simulator run this same code.
//
// Policy: continuous batching with chunked prefill (Orca, Yu et al. 2022; Sarathi-Serve, Agrawal et al.
// 2024).
//
//   1. Decodes. Every running sequence with one token left to compute gets it, in rank order.
//
//   2. Prompts. Running sequences with more to compute share what is left of the token budget; beside
//   decodes, of prompt_token_budget, so that streams keep their pace.
//
//   3. Admission. Waiting sequences in rank order while slots, tokens and pages last. The first that finds no
//   pages stops the row: nobody is overtaken for being small.
//
//   4. Giving way. A sequence gives its slot to a waiting one of a lower service class; within a class, when
//   its tenant has more slots than its weight's share, and the other's has fewer and was served less. It is
//   paused: it keeps its pages and goes on later. It loses them where the other one needs them.
//
//   It does without its token in a step in which the pace of streams would cut a prompt that it would have to
//   give way to.
//
//   5. Scarcity. Admission takes the blocks of every token known so far, so only decodes can run out of them.
//   Then paused sequences, and after them running ones, give theirs back: of the highest class the one whose
//   return costs the least time per block.
//
//   6. Gathering. With nothing running, admission waits up to batch_wait_seconds for further requests, as
//   long as tokens, slots and pages are left for them.
//
// Guarantees, given validate(config) and admissible() for every sequence: the token budget and the free
// blocks are never exceeded; every running decode advances in every step in which it neither gives way nor
// loses its pages; the running sequence of the lowest rank loses its pages only to one that it has to give
// way to. Where overdue sequences are promoted (fair_share.h), every sequence finishes.
//
// Thread safety: pure functions. Cost: O(n log n) in the sequences passed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "schedule/fair_share.h"

namespace assay {

struct ScheduleConfig {
  int64_t step_token_budget = 512;  // tokens of one step; >= max_running, so that no decode ever waits
  int64_t max_running = 16;
  int64_t page_tokens = 16;  // tokens of one block
  int64_t total_blocks = 0;
  int64_t watermark_blocks = 0;    // left free by admission while others run, so that they can grow
  double batch_wait_seconds = 0;   // how long a batch is kept open for further requests
  int64_t fairness_tokens = 2048;  // a tenant loses pages to another only when served so much more
};

// A sequence as the scheduler sees it.
struct ScheduleSequence {
  uint64_t id = 0;
  uint64_t rank = 0;       // served in ascending order; distinct (fair_share.h, serving_order)
  int64_t n_tokens = 0;    // prompt and generated so far
  int64_t n_computed = 0;  // of them, those in pages, or in what is swapped in at admission; < n_tokens
  // Running or paused: blocks held; running: enough for n_tokens, or for n_tokens - 1 when one token is left
  // to compute. Waiting: blocks of the prefix cache that hold its first tokens and would be shared.
  int64_t n_blocks = 0;
  // Running or paused: blocks that become free if it gives its pages back (those that nobody else holds); at
  // least 1, since the page being written is never shared. Waiting: those of n_blocks that nobody holds now,
  // so that sharing them takes them off the free blocks.
  int64_t n_sole_blocks = 0;
  int service_class = 0;
  int32_t tenant = 0;
  double return_seconds = 0;  // what losing its pages would cost later: recomputing or swapping
  bool is_protected = false;  // lost its pages often enough: others first
  bool paused = false;        // waiting, with its pages
};

struct ScheduleState {
  std::span<const ScheduleSequence> running;
  std::span<const ScheduleSequence> waiting;  // may be only the lowest ranks of the queue; all paused ones
  int64_t free_blocks = 0;                    // unused, or kept only for the prefix cache
  std::span<const ShareTenant> tenants;       // indexed by ScheduleSequence::tenant; may be empty: one tenant
  int64_t prompt_token_budget = -1;  // of a step with decodes (step_time.h); -1: what the step leaves
  double oldest_wait_seconds = 0;    // of those that wait for their first step
};

struct PlannedSlice {
  uint64_t id = 0;
  int64_t n_tokens = 0;    // to compute, after n_computed
  int64_t new_blocks = 0;  // to allocate first
  bool admitted = false;   // was waiting
};

struct StepPlan {
  std::vector<uint64_t> preempted;   // running or paused: give all pages back and wait; before anything else
  std::vector<uint64_t> paused;      // were running: wait with their pages
  std::vector<PlannedSlice> slices;  // decodes, then prompts, then admitted ones
  int64_t n_tokens = 0;              // sum over slices
  int64_t taken_blocks = 0;          // new blocks and free ones that admitted sequences share
  double hold_seconds = 0;           // nothing runs and the batch is kept open: plan again by then
};

// kInvalidArgument, naming the field, for values that cannot keep the guarantees.
Result<void> validate(const ScheduleConfig& config);

// Whether a sequence of this length could run to its end alone. The caller refuses others, or they would wait
// forever. The last token of a sequence is never computed, only delivered, and needs no page.
bool admissible(int64_t longest_tokens, const ScheduleConfig& config);

// May be empty of slices although sequences wait (preemption freed the pages: plan again after applying it;
// or the batch is kept open).
StepPlan plan_step(const ScheduleState& state, const ScheduleConfig& config);

}  // namespace assay
