// What an engine has done and holds. Plain values; totals never fall.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

struct TenantStats {
  std::string tenant;
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t prompt_tokens_total = 0;  // of admitted sequences, cached ones included
  int64_t generated_tokens_total = 0;
  int64_t kv_blocks = 0;  // held; one shared by several sequences counts for each
};

// A block of the KV cache: free, kept for reuse only, held by one sequence, held by several.
enum class KvPageState : uint8_t { kFree, kCached, kUsed, kShared, kCount };

struct EngineStats {
  int64_t running = 0;
  int64_t waiting = 0;  // queued, paused or preempted
  int64_t kv_blocks_total = 0;
  int64_t kv_page_tokens = 16;   // positions of a block
  int64_t kv_blocks_used = 0;    // referenced by sequences
  int64_t kv_blocks_cached = 0;  // kept for prefix reuse, evictable
  int64_t kv_tokens_used = 0;    // positions of used blocks that hold a token; the rest is fragmentation
  int64_t prompt_tokens_total = 0;
  int64_t prompt_tokens_cached_total = 0;
  int64_t generated_tokens_total = 0;
  int64_t prefix_tokens_asked_total = 0;  // prefix cache, in whole pages, at admission
  int64_t prefix_tokens_found_total = 0;
  int64_t prefix_pages_evicted_total = 0;
  int64_t steps_total = 0;
  // A step that computes any prompt token is a prefill step, every other one a decode step.
  int64_t prefill_steps_total = 0;
  int64_t decode_steps_total = 0;
  double prefill_seconds_total = 0;
  double decode_seconds_total = 0;
  double plan_seconds_total = 0;  // of both: choosing who runs, and moving pages
  int64_t preemptions_total = 0;  // pages taken back
  int64_t pauses_total = 0;       // turns given up, pages kept
  int64_t swapped_out_blocks_total = 0;
  int64_t recomputed_tokens_total = 0;
  int64_t refused_deadline_total = 0;
  int64_t last_batch_tokens = 0;
  int64_t last_batch_sequences = 0;
  int64_t last_batch_prefill_tokens = 0;
  double last_step_seconds = 0;
  double expected_queue_seconds = 0;  // what a request of the default class would wait now
  std::vector<TenantStats> tenants;   // by name
};

}  // namespace assay
