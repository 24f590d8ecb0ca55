// One request inside the engine: its tokens, its pages, and what must survive preemption (sampler, stream,
// times). Thread safety: made by the submitting thread, then only the step thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/prompt_reader.h"
#include "engine/sampler.h"
#include "engine/token_stream.h"
#include "kvcache/page_table.h"
#include "model/model.h"

namespace assay {

struct Sequence {
  Sequence(RequestId request_id, GenerationRequest request, std::shared_ptr<StreamSink> sink,
           const Tokenizer& tokenizer, KvPool& pool, int64_t longest, double now);

  int64_t n_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t n_generated() const { return n_tokens() - n_prompt; }
  // Whether the next token's logits follow from what is computed.
  bool ready() const { return n_computed == n_tokens(); }
  // The phase of a position: prompt tokens are prefill whenever they are computed (numeric/precision.h).
  Phase phase_at(int64_t position) const { return position < n_prompt ? Phase::kPrefill : Phase::kDecode; }
  // The next n >= 1 tokens to compute. The last one's hidden state is wanted, or all of them while the prompt
  // is being read.
  SequenceSlice slice(int64_t n) const;
  Usage usage() const;
  // Whoever wants something of every prompt token has to compute them all.
  bool may_use_prefixes() const { return !reads_prompt || n_generated() > 0; }
  bool is_swapped() const { return !swap_slots.empty(); }

  const RequestId id;  // also the arrival number
  std::vector<int32_t> tokens;
  const int64_t n_prompt;
  const RequestClass share;
  const uint64_t prefix_salt;  // of its tenant: pages are shared within one only
  const bool reads_prompt;     // wants something of it: the prefix cache is not read
  const int64_t longest;       // prompt and generated tokens at which it ends
  const bool ignore_end_of_generation;
  int64_t n_computed = 0;
  PageTable pages;
  const std::shared_ptr<TokenConstraint> constraint;  // or null
  Sampler sampler;
  PromptReader reader;
  TokenStream stream;

  // Where it stands in the queue (step_loop.h, step_planner.h).
  int32_t tenant = 0;  // in the ledger
  int service_class = 0;
  bool overdue = false;  // has waited longer than the bound; stays so
  bool is_running = false;
  bool paused = false;              // waits with its pages
  std::vector<int32_t> swap_slots;  // waits with its first n_computed tokens there
  int n_preemptions = 0;
  int64_t n_idle_found = 0;  // of the prefix pages that it found as a candidate, those that nobody held
  double waits_since = 0;  // when it arrived, or ran last

  bool started = false;  // has run at least once
  int64_t n_cached_prompt = 0;
  int64_t n_sampled = 0;  // includes an end-of-generation token, which is not delivered
  double submit_time = 0;
  double start_time = 0;
  double first_token_time = 0;
  double last_token_time = 0;
};

}  // namespace assay
