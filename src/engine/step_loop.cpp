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

bool all_finite(std::span<const float> values) {
  float sum = 0;  // x - x is 0, or NaN for NaN and infinities
  for (const float value : values) sum += value - value;
  return sum == 0;
}

}  // namespace

StepLoop::StepLoop(Model& model, const Tokenizer& tokenizer, KvPool pool, ScheduleConfig schedule,
                   bool prefix_cache, const Clock& clock)
    : model_(model), tokenizer_(tokenizer), clock_(clock), pool_(std::move(pool)), schedule_(schedule) {
  CHECK_OP(schedule_.total_blocks, ==, pool_.n_blocks());
  CHECK_OP(schedule_.page_tokens, ==, pool_.layout().page_tokens);
  if (prefix_cache) prefixes_.emplace(pool_);
  const auto width = static_cast<size_t>(model_.config().n_embedding);
  const int64_t n_rows = std::min(kLogitRows, schedule_.max_running);
  hidden_.resize(static_cast<size_t>(schedule_.step_token_budget) * width);
  last_hidden_.resize(static_cast<size_t>(n_rows) * width);
  logits_.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(model_.config().n_vocab));
  stats_.kv_blocks_total = pool_.n_blocks();
  stats_.kv_page_tokens = schedule_.page_tokens;
}

void StepLoop::add(std::unique_ptr<Sequence> sequence) {
  const RequestId id = sequence->id;
  CHECK(waiting_.emplace(id, std::move(sequence)).second);
}

void StepLoop::cancel(RequestId id) {
  for (Queue* queue : {&waiting_, &running_})
    if (const auto found = queue->find(id); found != queue->end())
      return finish(*found->second, FinishReason::kCancelled);
}

void StepLoop::cancel_all() {
  while (!running_.empty()) finish(*running_.begin()->second, FinishReason::kCancelled);
  while (!waiting_.empty()) finish(*waiting_.begin()->second, FinishReason::kCancelled);
}

void StepLoop::step() {
  const double start = clock_.now_seconds();
  const StepPlan step_plan = plan();
  apply(step_plan);
  if (step_plan.slices.empty()) return;
  compute(step_plan);
  std::vector<Row> rows = account_for(step_plan);
  sample(rows);
  ++stats_.steps_total;
  stats_.last_batch_tokens = step_plan.n_tokens;
  stats_.last_step_seconds = clock_.now_seconds() - start;
}

bool StepLoop::one_format_for_both_phases() const {
  return model_.precision().prefill_activations == model_.precision().decode_activations;
}

// The leading tokens, at most n, whose pages may be found by others: a page holds what its tokens' phases
// gave, and whoever reuses it takes them for prompt tokens.
std::span<const int32_t> StepLoop::shareable_tokens(const Sequence& sequence, int64_t n) const {
  if (!one_format_for_both_phases()) n = std::min(n, sequence.n_prompt);
  return std::span(sequence.tokens).first(static_cast<size_t>(n));
}

ScheduleSequence StepLoop::view_running(const Sequence& sequence) const {
  const auto blocks = sequence.pages.blocks();
  // Pages come to be shared through the index only, and it holds one reference itself.
  const int sole_count = prefixes_ ? 2 : 1;
  const auto n_sole = std::ranges::count_if(
      blocks, [&](int32_t block) { return pool_.reference_count(block) <= sole_count; });
  return {sequence.id, sequence.id, sequence.n_tokens(), sequence.n_computed, std::ssize(blocks), n_sole};
}

// Takes references to the pages that hold its prefix, so that a later one in the row does not count them
// again.
ScheduleSequence StepLoop::look_up_prefix(Sequence& sequence) {
  ScheduleSequence view{sequence.id, sequence.id, sequence.n_tokens()};
  if (!prefixes_ || (sequence.reads_prompt && sequence.n_generated() == 0)) return view;
  // The last token must be computed: its hidden state is wanted.
  const std::vector<int32_t> blocks =
      prefixes_->match(shareable_tokens(sequence, sequence.n_tokens() - 1), sequence.prefix_salt);
  sequence.pages.adopt(blocks);
  view.n_blocks = std::ssize(blocks);
  view.n_computed = view.n_blocks * schedule_.page_tokens;
  view.n_sole_blocks =
      std::ranges::count_if(blocks, [&](int32_t block) { return pool_.reference_count(block) == 2; });
  return view;
}

StepPlan StepLoop::plan() {
  running_views_.clear();
  waiting_views_.clear();
  for (const auto& [id, sequence] : running_) running_views_.push_back(view_running(*sequence));
  int64_t free_blocks = pool_.n_free() + pool_.n_idle();
  int64_t slots = schedule_.max_running - std::ssize(running_);
  for (const auto& [id, sequence] : waiting_) {
    if (slots-- == 0) break;
    waiting_views_.push_back(look_up_prefix(*sequence));
  }
  return plan_step({running_views_, waiting_views_, free_blocks}, schedule_);
}

void StepLoop::preempt(RequestId id) {
  auto node = running_.extract(id);
  CHECK(!node.empty());
  Sequence& sequence = *node.mapped();
  publish_pages(sequence);  // what nobody needs meanwhile will be there when it returns
  sequence.pages.clear();
  sequence.n_computed = 0;
  waiting_.insert(std::move(node));
  ++stats_.preemptions_total;
}

void StepLoop::admit(RequestId id) {
  auto node = waiting_.extract(id);
  CHECK(!node.empty());
  Sequence& sequence = *node.mapped();
  sequence.n_computed = std::ssize(sequence.pages.blocks()) * schedule_.page_tokens;
  if (!sequence.started) {
    sequence.started = true;
    sequence.start_time = clock_.now_seconds();
    sequence.n_cached_prompt = sequence.n_computed;
    stats_.prompt_tokens_total += sequence.n_prompt;
    stats_.prompt_tokens_cached_total += sequence.n_computed;
  }
  running_.insert(std::move(node));
}

void StepLoop::grow_pages(Sequence& sequence, int64_t n_tokens) {
  const int64_t missing = sequence.pages.pages_missing(n_tokens) - pool_.n_free();
  if (missing > 0 && prefixes_) prefixes_->evict(missing);
  CHECK(sequence.pages.grow(n_tokens));  // the plan counted them
}

void StepLoop::publish_pages(Sequence& sequence) {
  if (prefixes_)
    prefixes_->insert(shareable_tokens(sequence, sequence.n_computed), sequence.pages, sequence.prefix_salt);
}

void StepLoop::apply(const StepPlan& plan) {
  for (const PlannedSlice& slice : plan.slices)
    if (slice.admitted) admit(slice.id);
  // Those that looked up a prefix but stay in the row hold nothing.
  for (const auto& [id, sequence] : waiting_) sequence->pages.clear();
  for (const RequestId id : plan.preempted) preempt(id);
  for (const PlannedSlice& slice : plan.slices) {
    Sequence& sequence = *running_.at(slice.id);
    CHECK_OP(sequence.pages.pages_missing(sequence.n_tokens()), ==, slice.new_blocks);
    grow_pages(sequence, sequence.n_tokens());
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
    if (!sequence.ready()) continue;
    if (sequence.n_generated() == 0) publish_pages(sequence);
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
  return stats;
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
