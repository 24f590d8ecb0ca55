// The engine without its thread: step() plans, runs one ragged batch, samples and delivers. The engine calls
// it from its step thread; tests call it directly.
//
// A sequence that has to give way keeps its tokens, sampler and stream. Paused, it keeps its pages too;
// preempted, it gives them back and later recomputes them, or has them copied back in, whichever is expected
// to take less time. Generated tokens stay in the decode phase, so what it goes on with is bit-identical.
// Failure: a sequence whose numbers are not finite ends with kError; its pages are never shared.
// Ownership: borrows model, tokenizer and clock. Thread safety: one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/load_snapshot.h"
#include "engine/sequence.h"
#include "engine/step_planner.h"
#include "engine/tenant_ledger.h"
#include "kvcache/kv_pool.h"
#include "kvcache/prefix_index.h"
#include "kvcache/swap_space.h"
#include "model/model.h"

namespace assay {

struct StepLoopOptions {
  ScheduleConfig schedule;  // must be valid and agree with the pool
  bool prefix_cache = true;
  double itl_bound_seconds = 0;  // 0: automatic
  double patience_seconds = 30;  // who waits longer is promoted
};

class StepLoop {
 public:
  // Pool and swap space are taken over.
  StepLoop(Model& model, const Tokenizer& tokenizer, KvPool pool, SwapSpace swap,
           const StepLoopOptions& options, const Clock& clock);
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  KvPool& pool() { return pool_; }
  void add(std::unique_ptr<Sequence> sequence);  // its PageTable must use pool()
  void cancel(RequestId id);                     // unknown ids are ignored
  void cancel_all();

  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Returns how long to wait before the next step unless something arrives: a batch is being kept open.
  double step();

  EngineStats stats() const;
  std::vector<KvPageState> page_map() const;  // [n_blocks]
  LoadSnapshot load() const;

 private:
  // A row of the hidden states whose next token is wanted.
  struct Row {
    Sequence* sequence;
    int64_t hidden_row;
    Phase phase;
  };

  ReturnRates return_rates() const;
  void apply(const StepPlan& plan);
  void preempt(RequestId id);
  void pause(RequestId id);
  void admit(RequestId id);
  void swap_in(Sequence& sequence);
  void grow_pages(Sequence& sequence, int64_t n_tokens);
  void publish_pages(Sequence& sequence);

  void compute(const StepPlan& plan);
  std::vector<Row> account_for(const StepPlan& plan);
  void sample(std::span<Row> rows);
  void take_token(Sequence& sequence, std::span<float> logits);
  Result<void> read_prompt(Sequence& sequence, std::span<const float> hidden, int64_t first);
  bool accept_token(Sequence& sequence, int32_t token);
  void finish(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});
  void account_time(const StepPlan& plan, int64_t n_prompt_tokens, double seconds);

  Model& model_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  KvPool pool_;
  SwapSpace swap_;
  std::optional<PrefixIndex> prefixes_;
  StepPlanner planner_;
  TenantLedger ledger_;
  StepTimeModel times_;
  SequenceQueue waiting_;
  SequenceQueue running_;

  double swap_bytes_per_second_;
  double slot_seconds_ = 0;  // how long the latest sequences ran, from first step to end
  std::vector<SequenceSlice> batch_;
  std::vector<float> hidden_;       // [wanted rows of a step, n_embedding]
  std::vector<float> last_hidden_;  // [kLogitRows, n_embedding]
  std::vector<float> logits_;       // [kLogitRows, n_vocab]
  SamplerWorkspace workspace_;
  EngineStats stats_;
};

}  // namespace assay
