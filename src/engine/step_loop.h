// The engine without its thread: step() plans, runs one ragged batch, samples and delivers. The engine calls
// it from its step thread; tests call it directly.
//
// Pages: waiting sequences at the front of the queue look up their prefix before planning, so that what the
// scheduler counts is what the pool has. A preempted sequence keeps its tokens, sampler and stream and
// recomputes the rest; generated tokens stay in the decode phase, so the recomputation is bit-identical.
// Failure: a sequence whose numbers are not finite ends with kError; its pages are never shared.
// Ownership: borrows model, tokenizer and clock. Thread safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "kvcache/kv_pool.h"
#include "kvcache/prefix_index.h"
#include "model/model.h"
#include "schedule/scheduler.h"

namespace assay {

class StepLoop {
 public:
  // `schedule` must be valid and agree with the pool. The pool is taken over.
  StepLoop(Model& model, const Tokenizer& tokenizer, KvPool pool, ScheduleConfig schedule, bool prefix_cache,
           const Clock& clock);
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  KvPool& pool() { return pool_; }
  void add(std::unique_ptr<Sequence> sequence);  // its PageTable must use pool()
  void cancel(RequestId id);                     // unknown ids are ignored
  void cancel_all();

  bool idle() const { return waiting_.empty() && running_.empty(); }
  void step();

  EngineStats stats() const;
  std::vector<KvPageState> page_map() const;  // [n_blocks]

 private:
  using Queue = std::map<RequestId, std::unique_ptr<Sequence>>;  // in order of arrival

  // A row of the hidden states whose next token is wanted.
  struct Row {
    Sequence* sequence;
    int64_t hidden_row;
    Phase phase;
  };

  bool one_format_for_both_phases() const;
  std::span<const int32_t> shareable_tokens(const Sequence& sequence, int64_t n) const;

  StepPlan plan();
  ScheduleSequence view_running(const Sequence& sequence) const;
  ScheduleSequence look_up_prefix(Sequence& sequence);
  void preempt(RequestId id);
  void admit(RequestId id);
  void grow_pages(Sequence& sequence, int64_t n_tokens);
  void publish_pages(Sequence& sequence);

  void apply(const StepPlan& plan);
  void compute(const StepPlan& plan);
  std::vector<Row> account_for(const StepPlan& plan);
  void sample(std::span<Row> rows);
  void take_token(Sequence& sequence, std::span<float> logits);
  Result<void> read_prompt(Sequence& sequence, std::span<const float> hidden, int64_t first);
  bool accept_token(Sequence& sequence, int32_t token);
  void finish(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});

  Model& model_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  KvPool pool_;
  std::optional<PrefixIndex> prefixes_;
  ScheduleConfig schedule_;
  Queue waiting_;
  Queue running_;

  std::vector<ScheduleSequence> running_views_, waiting_views_;
  std::vector<SequenceSlice> batch_;
  std::vector<float> hidden_;       // [wanted rows of a step, n_embedding]
  std::vector<float> last_hidden_;  // [kLogitRows, n_embedding]
  std::vector<float> logits_;       // [kLogitRows, n_vocab]
  SamplerWorkspace workspace_;
  EngineStats stats_;
};

}  // namespace assay
