#include "engine/speed.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/units.h"
#include "kvcache/kv_pool.h"
#include "kvcache/page_table.h"

namespace assay {
namespace {

constexpr int64_t kMostPrefillTokens = int64_t{1} << 30;

struct Timed {
  std::vector<int32_t> tokens;  // those that decode runs append, too
  PageTable pages;
};

Result<void> check(const SpeedOptions& options, const Model& model) {
  const auto in_range = [](const char* field, int64_t value, int64_t low, int64_t high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return fail(ErrorCode::kInvalidArgument, field, "expected {} to {}, found {}", low, high, value);
  };
  RETURN_IF_ERROR(in_range("repetitions", options.repetitions, 1, 1000));
  RETURN_IF_ERROR(in_range("decode_steps", options.decode_steps, 1, model.max_context()));
  RETURN_IF_ERROR(in_range("prompt_tokens", options.prompt_tokens, 1, model.max_context()));
  RETURN_IF_ERROR(
      in_range("context_tokens", options.context_tokens, 1, model.max_context() - options.decode_steps));
  if (options.page_tokens != 16 && options.page_tokens != 32)
    return fail(ErrorCode::kInvalidArgument, "page_tokens", "expected 16 or 32, found {}",
                options.page_tokens);
  RETURN_IF_ERROR(in_range("step_token_budget", options.step_token_budget, 1, kMostPrefillTokens));
  if (options.batch.empty()) return fail(ErrorCode::kInvalidArgument, "batch", "expected at least one size");
  for (const int n_sequences : options.batch)
    RETURN_IF_ERROR(in_range("batch", n_sequences, 1, model.max_batch_tokens()));
  return {};
}

class SpeedRun {
 public:
  SpeedRun(Model& model, const SpeedOptions& options, KvPool pool)
      : model_(model),
        options_(options),
        chunk_(std::min(options.step_token_budget, model.max_batch_tokens())),
        pool_(std::move(pool)),
        random_(options.seed, "speed") {
    const int most = std::ranges::max(options.batch);
    hidden_.resize(static_cast<size_t>(most) * width());
    logits_.resize(static_cast<size_t>(most) * static_cast<size_t>(model.config().n_vocab));
    n_runs_ = (1 + options.repetitions) * (1 + std::ssize(options.batch));
  }

  Result<Speed> measure() {
    Speed speed;
    ASSIGN_OR_RETURN(speed.prefill_tokens_per_second, repeat([&] { return time_prefill(); }));
    for (const int n_sequences : options_.batch) {
      std::vector<Timed> sequences;
      for (int i = 0; i < n_sequences; ++i) sequences.push_back(make_sequence(options_.context_tokens));
      for (Timed& sequence : sequences) prefill(sequence);
      ASSIGN_OR_RETURN(SpeedFigure figure, repeat([&] { return time_decode(sequences); }));
      speed.decode.push_back({n_sequences, std::move(figure)});
    }
    return speed;
  }

 private:
  size_t width() const { return static_cast<size_t>(model_.config().n_embedding); }

  int32_t random_token() {
    return static_cast<int32_t>(random_.below(static_cast<uint64_t>(model_.config().n_vocab)));
  }

  Timed make_sequence(int n_tokens) {
    Timed sequence{{}, PageTable(pool_)};
    for (int i = 0; i < n_tokens; ++i) sequence.tokens.push_back(random_token());
    return sequence;
  }

  template <class Body>
  Result<SpeedFigure> repeat(Body&& run) {
    SpeedFigure figure;
    for (int i = 0; i <= options_.repetitions; ++i) {
      const double rate = run();
      if (i > 0) figure.runs.push_back(rate);
      const double share = static_cast<double>(++n_done_) / static_cast<double>(n_runs_);
      if (options_.progress && !options_.progress(share))
        return fail(ErrorCode::kCancelled, "speed", "cancelled");
    }
    figure.median = median(figure.runs);
    figure.min = std::ranges::min(figure.runs);
    figure.max = std::ranges::max(figure.runs);
    return figure;
  }

  void prefill(Timed& sequence) {
    const auto n_tokens = std::ssize(sequence.tokens);
    CHECK(sequence.pages.grow(n_tokens));
    for (int64_t at = 0; at < n_tokens; at += chunk_) {
      const auto n = static_cast<size_t>(std::min<int64_t>(chunk_, n_tokens - at));
      const SequenceSlice slice{std::span(sequence.tokens).subspan(static_cast<size_t>(at), n),
                                static_cast<int32_t>(at), sequence.pages.blocks(), static_cast<int32_t>(n),
                                static_cast<int32_t>(n - 1)};
      model_.forward({&slice, 1}, pool_, std::span(hidden_).first(width()));
    }
  }

  // Up to and with the logits that the first token would be sampled from.
  double time_prefill() {
    Timed sequence = make_sequence(options_.prompt_tokens);
    const Stopwatch watch;
    prefill(sequence);
    model_.project(std::span(hidden_).first(width()), 1, Phase::kPrefill,
                   std::span(logits_).first(static_cast<size_t>(model_.config().n_vocab)));
    return options_.prompt_tokens / watch.seconds();
  }

  // Every run starts from the same context again.
  double time_decode(std::vector<Timed>& sequences) {
    const auto n = sequences.size();
    std::vector<SequenceSlice> batch(n);
    for (Timed& sequence : sequences) {
      sequence.tokens.resize(static_cast<size_t>(options_.context_tokens));
      for (int i = 0; i < options_.decode_steps; ++i) sequence.tokens.push_back(random_token());
      CHECK(sequence.pages.grow(std::ssize(sequence.tokens)));
    }
    const Stopwatch watch;
    for (int step = 0; step < options_.decode_steps; ++step) {
      const int position = options_.context_tokens + step;
      for (size_t i = 0; i < n; ++i)
        batch[i] = {std::span(sequences[i].tokens).subspan(static_cast<size_t>(position), 1), position,
                    sequences[i].pages.blocks(), 0};
      const std::span hidden = std::span(hidden_).first(n * width());
      model_.forward(batch, pool_, hidden);
      model_.project(hidden, static_cast<int64_t>(n), Phase::kDecode,
                     std::span(logits_).first(n * static_cast<size_t>(model_.config().n_vocab)));
    }
    return static_cast<double>(n) * options_.decode_steps / watch.seconds();
  }

  Model& model_;
  const SpeedOptions& options_;
  const int chunk_;
  KvPool pool_;
  Random random_;
  std::vector<float> hidden_;  // [rows, n_embedding]
  std::vector<float> logits_;  // [largest batch, n_vocab]
  int64_t n_runs_ = 0;
  int64_t n_done_ = 0;
};

}  // namespace

Result<Speed> measure_speed(Model& model, const SpeedOptions& options) {
  RETURN_IF_ERROR(check(options, model));
  const int64_t pages_each = ceil_div(options.context_tokens + options.decode_steps, options.page_tokens);
  const int64_t n_pages = std::max(std::ranges::max(options.batch) * pages_each,
                                   ceil_div(options.prompt_tokens, options.page_tokens));
  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(model.kv_layout(options.page_tokens), n_pages));
  return SpeedRun(model, options, std::move(pool)).measure();
}

}  // namespace assay
