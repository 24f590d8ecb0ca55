#include "engine/step_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

// Logits of that many sequences at a time: bounds the memory (a vocabulary may have 256 K tokens) without
// running the output matrix on thin batches.
constexpr int64_t kLogitRows = 32;
constexpr double kFirstSwapRate = 4e9;  // bytes per second one way, until one was measured
constexpr double kRateMemory = 0.3;     // weight of the latest measurement
constexpr double kSlotMemory = 0.1;     // weight of the latest sequence

std::optional<PrefixIndex> make_prefixes(bool wanted, KvPool& pool) {
  return wanted ? std::optional<PrefixIndex>(std::in_place, pool) : std::nullopt;
}

bool all_finite(std::span<const float> values) {
  float sum = 0;  // x - x is 0, or NaN for NaN and infinities
  for (const float value : values) sum += value - value;
  return sum == 0;
}

}  // namespace

StepLoop::StepLoop(Model& model, const Tokenizer& tokenizer, KvPool pool, SwapSpace swap,
                   const StepLoopOptions& options, const Clock& clock)
    : model_(model),
      tokenizer_(tokenizer),
      clock_(clock),
      pool_(std::move(pool)),
      swap_(std::move(swap)),
      prefixes_(make_prefixes(options.prefix_cache, pool_)),
      planner_({.schedule = options.schedule,
                .itl_bound_seconds = options.itl_bound_seconds,
                .patience_seconds = options.patience_seconds,
                .generated_pages_shared =
                    model.precision().prefill_activations == model.precision().decode_activations},
               pool_, prefixes_ ? &*prefixes_ : nullptr),
      swap_bytes_per_second_(kFirstSwapRate) {
  const ScheduleConfig& schedule = options.schedule;
  CHECK_OP(schedule.total_blocks, ==, pool_.n_blocks());
  CHECK_OP(schedule.page_tokens, ==, pool_.layout().page_tokens);
  const auto width = static_cast<size_t>(model_.config().n_embedding);
  const int64_t n_rows = std::min(kLogitRows, schedule.max_running);
  hidden_.resize(static_cast<size_t>(schedule.step_token_budget) * width);
  last_hidden_.resize(static_cast<size_t>(n_rows) * width);
  logits_.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(model_.config().n_vocab));
  stats_.kv_blocks_total = pool_.n_blocks();
  stats_.kv_page_tokens = schedule.page_tokens;
}

void StepLoop::add(std::unique_ptr<Sequence> sequence) {
  sequence->tenant = ledger_.enter(sequence->share);
  const RequestId id = sequence->id;
  CHECK(waiting_.emplace(id, std::move(sequence)).second);
}

void StepLoop::cancel(RequestId id) {
  for (SequenceQueue* queue : {&waiting_, &running_})
    if (const auto found = queue->find(id); found != queue->end())
      return finish(*found->second, FinishReason::kCancelled);
}

void StepLoop::cancel_all() {
  while (!running_.empty()) finish(*running_.begin()->second, FinishReason::kCancelled);
  while (!waiting_.empty()) finish(*waiting_.begin()->second, FinishReason::kCancelled);
}

double StepLoop::step() {
  const double start = clock_.now_seconds();
  const StepPlan plan = planner_.plan(running_, waiting_, ledger_, times_, return_rates(), start);
  apply(plan);
  if (plan.slices.empty()) return plan.hold_seconds;
  int64_t n_prompt_tokens = 0;
  for (const PlannedSlice& slice : plan.slices)
    if (running_.at(slice.id)->n_tokens() - running_.at(slice.id)->n_computed > 1)
      n_prompt_tokens += slice.n_tokens;
  stats_.plan_seconds_total += clock_.now_seconds() - start;
  compute(plan);
  std::vector<Row> rows = account_for(plan);
  sample(rows);
  account_time(plan, n_prompt_tokens, clock_.now_seconds() - start);
  return 0;
}

void StepLoop::account_time(const StepPlan& plan, int64_t n_prompt_tokens, double seconds) {
  times_.observe(plan.n_tokens - n_prompt_tokens, n_prompt_tokens, seconds);
  ++stats_.steps_total;
  ++(n_prompt_tokens > 0 ? stats_.prefill_steps_total : stats_.decode_steps_total);
  (n_prompt_tokens > 0 ? stats_.prefill_seconds_total : stats_.decode_seconds_total) += seconds;
  stats_.last_batch_tokens = plan.n_tokens;
  stats_.last_batch_sequences = std::ssize(plan.slices);
  stats_.last_batch_prefill_tokens = n_prompt_tokens;
  stats_.last_step_seconds = seconds;
}

ReturnRates StepLoop::return_rates() const {
  return {.prompt_token_seconds = times_.prompt_token_seconds(),
          .swap_bytes_per_second = swap_bytes_per_second_,
          .block_bytes = pool_.layout().block_bytes(),
          .free_swap_blocks = swap_.n_free()};
}

// Its pages go: copied out where that is expected to be cheaper, otherwise what nobody needs meanwhile will
// still be found in the prefix cache when it returns.
void StepLoop::preempt(RequestId id) {
  auto node = running_.extract(id);
  if (node.empty()) node = waiting_.extract(id);  // was paused
  CHECK(!node.empty());
  Sequence& sequence = *node.mapped();
  const auto blocks = sequence.pages.blocks();
  if (return_cost(sequence.n_computed, std::ssize(blocks), return_rates()).swaps()) {
    const Stopwatch clock;
    sequence.swap_slots = *swap_.store(pool_, blocks);
    stats_.swapped_out_blocks_total += std::ssize(blocks);
    const double bytes =
        static_cast<double>(blocks.size()) * static_cast<double>(pool_.layout().block_bytes());
    if (clock.seconds() > 0)
      swap_bytes_per_second_ += kRateMemory * (bytes / clock.seconds() - swap_bytes_per_second_);
  } else {
    publish_pages(sequence);
    stats_.recomputed_tokens_total += sequence.n_computed;
    sequence.n_computed = 0;
  }
  sequence.pages.clear();
  sequence.is_running = sequence.paused = false;
  sequence.waits_since = clock_.now_seconds();
  ++sequence.n_preemptions;
  ++stats_.preemptions_total;
  waiting_.insert(std::move(node));
}

void StepLoop::pause(RequestId id) {
  auto node = running_.extract(id);
  CHECK(!node.empty());
  Sequence& sequence = *node.mapped();
  sequence.is_running = false;
  sequence.paused = true;
  sequence.waits_since = clock_.now_seconds();
  ++stats_.pauses_total;
  waiting_.insert(std::move(node));
}

void StepLoop::admit(RequestId id) {
  auto node = waiting_.extract(id);
  CHECK(!node.empty());
  Sequence& sequence = *node.mapped();
  if (!sequence.paused && !sequence.is_swapped()) {
    sequence.n_computed = std::ssize(sequence.pages.blocks()) * planner_.schedule().page_tokens;
    if (prefixes_ && sequence.may_use_prefixes()) {
      const int64_t page = planner_.schedule().page_tokens;
      stats_.prefix_tokens_asked_total += (sequence.n_tokens() - 1) / page * page;
      stats_.prefix_tokens_found_total += sequence.n_computed;
    }
  }
  sequence.paused = false;
  sequence.is_running = true;
  if (!sequence.started) {
    sequence.started = true;
    sequence.start_time = clock_.now_seconds();
    sequence.n_cached_prompt = sequence.n_computed;
    stats_.prompt_tokens_total += sequence.n_prompt;
    stats_.prompt_tokens_cached_total += sequence.n_computed;
    ledger_.count_prompt(sequence.tenant, sequence.n_prompt);
  }
  running_.insert(std::move(node));
}

void StepLoop::grow_pages(Sequence& sequence, int64_t n_tokens) {
  const int64_t missing = sequence.pages.pages_missing(n_tokens) - pool_.n_free();
  if (missing > 0 && prefixes_) prefixes_->evict(missing);
  CHECK(sequence.pages.grow(n_tokens));  // the plan counted them
}

void StepLoop::swap_in(Sequence& sequence) {
  swap_.load(sequence.swap_slots, pool_, sequence.pages.blocks());
  sequence.swap_slots.clear();
}

void StepLoop::publish_pages(Sequence& sequence) {
  if (!prefixes_ || sequence.pages.blocks().empty()) return;
  prefixes_->insert(planner_.shareable_tokens(sequence, sequence.n_computed), sequence.pages,
                    sequence.prefix_salt);
}

void StepLoop::apply(const StepPlan& plan) {
  for (const PlannedSlice& slice : plan.slices)
    if (slice.admitted) admit(slice.id);
  planner_.release_candidates();
  for (const RequestId id : plan.preempted) preempt(id);
  for (const RequestId id : plan.paused) pause(id);
  for (const PlannedSlice& slice : plan.slices) {
    Sequence& sequence = *running_.at(slice.id);
    CHECK_OP(sequence.pages.pages_missing(sequence.n_tokens()), ==, slice.new_blocks);
    grow_pages(sequence, sequence.n_tokens());
    if (sequence.is_swapped()) swap_in(sequence);
    ledger_.charge(sequence.tenant, slice.n_tokens);
  }
}

void StepLoop::compute(const StepPlan& plan) {
  batch_.clear();
  int64_t n_wanted = 0;
  for (const PlannedSlice& slice : plan.slices) {
    batch_.push_back(running_.at(slice.id)->slice(slice.n_tokens));
    n_wanted += batch_.back().n_wanted();
  }
  const auto width = static_cast<size_t>(model_.config().n_embedding);
  model_.forward(batch_, pool_, std::span(hidden_).first(static_cast<size_t>(n_wanted) * width));
}

// Books the computed tokens; returns the rows to sample from, those of one phase together.
std::vector<StepLoop::Row> StepLoop::account_for(const StepPlan& plan) {
  const auto width = static_cast<size_t>(model_.config().n_embedding);
  std::vector<Row> rows;
  int64_t next_row = 0;
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    const PlannedSlice& slice = plan.slices[i];
    Sequence& sequence = *running_.at(slice.id);
    const int64_t n_wanted = batch_[i].n_wanted();
    const auto hidden = std::span(hidden_).subspan(static_cast<size_t>(next_row) * width,
                                                   static_cast<size_t>(n_wanted) * width);
    next_row += n_wanted;
    // Attention carries a NaN of any earlier position into the last one, so one row tells for the whole
    // slice.
    if (!all_finite(hidden.last(width))) {
      finish(sequence, FinishReason::kError,
             Error{ErrorCode::kCorrupt, "hidden state",
                   fmt::format(
                       "not finite at position {}: the model overflows at this precision or its weights are "
                       "damaged",
                       sequence.n_computed + slice.n_tokens - 1)});
      continue;
    }
    if (const auto read = read_prompt(sequence, hidden, sequence.n_computed); !read) {
      finish(sequence, FinishReason::kError, read.error());
      continue;
    }
    sequence.n_computed += slice.n_tokens;
    sequence.waits_since = clock_.now_seconds();
    // Piece by piece: others with the same beginning wait for it.
    if (sequence.n_generated() == 0) publish_pages(sequence);
    if (!sequence.ready()) continue;
    if (sequence.n_tokens() >= sequence.longest) {
      finish(sequence, FinishReason::kLength);  // nothing was to be generated
    } else {
      rows.push_back({&sequence, next_row - 1, sequence.phase_at(sequence.n_computed - 1)});
    }
  }
  std::ranges::stable_sort(rows, {}, &Row::phase);
  return rows;
}

// `hidden` are the states of the positions from `first` on.
Result<void> StepLoop::read_prompt(Sequence& sequence, std::span<const float> hidden, int64_t first) {
  if (!sequence.reader.wants(first)) return {};
  const auto n_vocab = static_cast<size_t>(model_.config().n_vocab);
  const PromptReader::Projection projection{
      .project =
          [&](std::span<const float> rows, int64_t n) {
            const auto logits = std::span(logits_).first(static_cast<size_t>(n) * n_vocab);
            model_.project(rows, n, Phase::kPrefill, logits);
            return logits;
          },
      .max_rows = static_cast<int64_t>(logits_.size() / n_vocab),
      .n_embedding = model_.config().n_embedding,
      .n_vocab = model_.config().n_vocab};
  ASSIGN_OR_RETURN(const std::vector<PromptTokenLogprob> known,
                   sequence.reader.read(hidden, first, projection, workspace_));
  if (!known.empty()) sequence.stream.deliver_prompt(known);
  return {};
}

void StepLoop::sample(std::span<Row> rows) {
  const auto width = static_cast<size_t>(model_.config().n_embedding);
  const auto n_vocab = static_cast<size_t>(model_.config().n_vocab);
  while (!rows.empty()) {
    const Phase phase = rows.front().phase;
    const auto alike = std::ranges::find_if(rows, [&](const Row& row) { return row.phase != phase; });
    const size_t n = std::min(static_cast<size_t>(alike - rows.begin()), logits_.size() / n_vocab);
    for (size_t i = 0; i < n; ++i)
      std::copy_n(hidden_.begin() + rows[i].hidden_row * static_cast<int64_t>(width), width,
                  last_hidden_.begin() + static_cast<int64_t>(i * width));
    const std::span logits = std::span(logits_).first(n * n_vocab);
    model_.project(std::span(last_hidden_).first(n * width), static_cast<int64_t>(n), phase, logits);
    for (size_t i = 0; i < n; ++i) take_token(*rows[i].sequence, logits.subspan(i * n_vocab, n_vocab));
    rows = rows.subspan(n);
  }
}

void StepLoop::take_token(Sequence& sequence, std::span<float> logits) {
  if (sequence.constraint != nullptr) {
    const Result<void> masked = sequence.constraint->mask(logits);
    if (!masked) return finish(sequence, FinishReason::kError, masked.error());
  }
  Result<SampledToken> sampled = sequence.sampler.sample(logits, workspace_);
  if (!sampled) return finish(sequence, FinishReason::kError, sampled.error());
  const double now = clock_.now_seconds();
  if (sequence.n_sampled++ == 0) sequence.first_token_time = now;
  sequence.last_token_time = now;
  ++stats_.generated_tokens_total;
  ledger_.count_generated(sequence.tenant);
  const int32_t token = sampled->token;
  if (tokenizer_.is_end_of_generation(token) && !sequence.ignore_end_of_generation)
    return finish(sequence, FinishReason::kStop);
  if (!accept_token(sequence, token)) return;
  sequence.tokens.push_back(token);
  if (sequence.stream.deliver(std::move(*sampled))) return finish(sequence, FinishReason::kStop);
  if (sequence.constraint != nullptr && sequence.constraint->complete())
    return finish(sequence, FinishReason::kStop);
  if (sequence.n_tokens() >= sequence.longest) finish(sequence, FinishReason::kLength);
}

// False when the sequence's constraint refuses what it allowed: the sequence has then ended.
bool StepLoop::accept_token(Sequence& sequence, int32_t token) {
  if (sequence.constraint == nullptr || tokenizer_.is_end_of_generation(token)) return true;
  const Result<void> accepted = sequence.constraint->accept(token);
  if (!accepted) finish(sequence, FinishReason::kError, accepted.error());
  return accepted.has_value();
}

void StepLoop::finish(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  Completion completion;
  completion.reason = reason;
  completion.usage = sequence.usage();
  completion.error = std::move(error);
  if (reason == FinishReason::kStop || reason == FinishReason::kLength)
    completion.pooled = sequence.reader.pooled();
  if (reason != FinishReason::kError) publish_pages(sequence);
  if (sequence.started) {
    const double seconds = clock_.now_seconds() - sequence.start_time;
    slot_seconds_ += (slot_seconds_ == 0 ? 1 : kSlotMemory) * (seconds - slot_seconds_);
  }
  ledger_.leave(sequence.tenant);
  swap_.drop(sequence.swap_slots);
  // Out of the books first: the sink may look at stats or submit the next turn.
  auto node = running_.extract(sequence.id);
  if (node.empty()) node = waiting_.extract(sequence.id);
  CHECK(!node.empty());
  sequence.pages.clear();
  sequence.stream.finish(std::move(completion));
}

EngineStats StepLoop::stats() const {
  EngineStats stats = stats_;
  stats.running = std::ssize(running_);
  stats.waiting = std::ssize(waiting_);
  stats.kv_blocks_cached = pool_.n_idle();
  stats.kv_blocks_used = pool_.n_blocks() - pool_.n_free() - pool_.n_idle();
  if (prefixes_) stats.prefix_pages_evicted_total = prefixes_->stats().pages_evicted;
  stats.tenants = ledger_.totals();
  int64_t empty_positions = 0;
  for (const SequenceQueue* queue : {&running_, &waiting_})
    for (const auto& [id, sequence] : *queue) {
      TenantStats& tenant = stats.tenants[static_cast<size_t>(sequence->tenant)];
      ++(sequence->is_running ? tenant.running : tenant.waiting);
      tenant.kv_blocks += std::ssize(sequence->pages.blocks());
      empty_positions +=
          sequence->pages.n_positions() - (sequence->pages.blocks().empty() ? 0 : sequence->n_computed);
    }
  stats.kv_tokens_used = stats.kv_blocks_used * planner_.schedule().page_tokens - empty_positions;
  std::ranges::sort(stats.tenants, {}, &TenantStats::tenant);
  return stats;
}

LoadSnapshot StepLoop::load() const {
  LoadSnapshot load;
  for (const TenantStats& tenant : ledger_.totals()) load.tenants.push_back(tenant.tenant);
  for (const ShareTenant& tenant : ledger_.shares()) load.tenant_service.push_back(tenant.service);
  for (const SequenceQueue* queue : {&running_, &waiting_})
    for (const auto& [id, sequence] : *queue)
      load.count({.tenant = sequence->tenant,
                  .service_class = sequence->service_class,
                  .n_running = sequence->is_running ? 1 : 0,
                  .n_waiting = sequence->is_running ? 0 : 1,
                  .prompt_tokens_left = std::max<int64_t>(0, sequence->n_prompt - sequence->n_computed)});
  load.times = times_;
  load.queue = {.max_running = planner_.schedule().max_running,
                .slot_seconds = slot_seconds_,
                .bound_seconds = planner_.itl_bound(times_, std::ssize(running_)),
                .step_tokens = planner_.schedule().step_token_budget};
  return load;
}

std::vector<KvPageState> StepLoop::page_map() const {
  std::vector<KvPageState> map(static_cast<size_t>(pool_.n_blocks()), KvPageState::kFree);
  for (int32_t block = 0; block < pool_.n_blocks(); ++block) {
    const bool kept = pool_.is_kept(block);
    const int holders = pool_.reference_count(block) - (kept ? 1 : 0);
    KvPageState& state = map[static_cast<size_t>(block)];
    if (kept) state = KvPageState::kCached;
    if (holders > 0) state = holders == 1 ? KvPageState::kUsed : KvPageState::kShared;
  }
  return map;
}

}  // namespace assay
