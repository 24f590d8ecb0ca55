#include "quality/reference.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/stats.h"
#include "base/thread_pool.h"
#include "quality/divergence.h"
#include "quality/sequence_runner.h"

namespace assay {
namespace {

constexpr int kRowsAtOnce = 64;  // logits in memory: 2 x 64 x n_vocab floats
constexpr int kTopK = 10;
constexpr int kBootstrapRounds = 1000;

std::unexpected<Error> cancelled() {
  return fail(ErrorCode::kCancelled, "quality", "stopped");
}

// Collects residual streams by layer while a model runs; detaches itself.
class LayerTap {
 public:
  using OnLayer = std::function<void(int layer, std::span<const float> hidden)>;
  LayerTap(Model& model, OnLayer on_layer) : model_(&model) { model.set_observer(std::move(on_layer)); }
  ~LayerTap() { model_->set_observer({}); }
  LayerTap(const LayerTap&) = delete;
  LayerTap& operator=(const LayerTap&) = delete;

 private:
  Model* model_;
};

// Positions of a sequence whose next token is scored: i - 1 for i in [first_scored, n).
int first_row(const QualitySequence& sequence) {
  return std::max(1, sequence.first_scored) - 1;
}
int end_row(const QualitySequence& sequence) {
  return static_cast<int>(sequence.tokens.size()) - 1;
}

struct LayerSums {
  double difference = 0;
  double reference = 0;
};

// Everything summed up over the scored positions of one candidate.
struct Tally {
  std::vector<double> kl;                             // by position
  std::vector<std::pair<double, int64_t>> sequences;  // KL sum and count, by sequence
  double reference_nll = 0, candidate_nll = 0, overlap = 0;
  int64_t same_top = 0, not_finite = 0;

  void add(const Divergence& divergence) {
    if (!divergence.finite) {
      ++not_finite;
      return;
    }
    kl.push_back(divergence.kl);
    sequences.back().first += divergence.kl;
    ++sequences.back().second;
    reference_nll += divergence.reference_nll;
    candidate_nll += divergence.candidate_nll;
    overlap += divergence.top_k_overlap;
    same_top += divergence.same_top;
  }
};

// 95 % interval of the mean KL by resampling whole sequences: positions of one sequence are not independent.
Interval bootstrap_mean(const std::vector<std::pair<double, int64_t>>& sequences) {
  Random random(1, "bootstrap");
  std::vector<double> means;
  for (int round = 0; round < kBootstrapRounds; ++round) {
    double sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto& pick = sequences[random.below(sequences.size())];
      sum += pick.first;
      count += pick.second;
    }
    if (count > 0) means.push_back(sum / static_cast<double>(count));
  }
  return {quantile(means, 0.025), quantile(means, 0.975)};
}

void fill(const Tally& tally, QualityRecord& record) {
  record.top_k = kTopK;
  record.n_not_finite = tally.not_finite;
  const auto n = static_cast<double>(tally.kl.size());
  record.mean_kl = mean(tally.kl);
  const Interval interval = bootstrap_mean(tally.sequences);
  record.mean_kl_low = interval.low;
  record.mean_kl_high = interval.high;
  record.median_kl = median(tally.kl);
  record.p99_kl = quantile(tally.kl, 0.99);
  record.p999_kl = quantile(tally.kl, 0.999);
  record.max_kl = quantile(tally.kl, 1.0);
  record.top1_agreement = static_cast<double>(tally.same_top) / n;
  const Interval wilson = wilson_interval_95(tally.same_top, static_cast<long>(tally.kl.size()));
  record.top1_low = wilson.low;
  record.top1_high = wilson.high;
  record.top_k_overlap = tally.overlap / n;
  record.reference_perplexity = std::exp(tally.reference_nll / n);
  record.perplexity = std::exp(tally.candidate_nll / n);
  record.perplexity_increase = record.perplexity / record.reference_perplexity - 1;
}

// Adds |h - h_ref|^2 and |h_ref|^2 of the tokens that the reference kept.
void add_layer(std::span<const float> hidden, const std::vector<float>& kept, size_t offset,
               LayerSums& sums) {
  const size_t n = std::min(hidden.size(), kept.size() - std::min(offset, kept.size()));
  for (size_t i = 0; i < n; ++i) {
    const double reference = kept[offset + i];
    const double difference = static_cast<double>(hidden[i]) - reference;
    sums.difference += difference * difference;
    sums.reference += reference * reference;
  }
}

}  // namespace

Result<QualityReference> QualityReference::record(std::shared_ptr<Model> model, QualityText text,
                                                  const QualityProgress& progress, int layer_tokens) {
  QualityReference reference;
  reference.model_ = std::move(model);
  reference.text_ = std::move(text);
  reference.layer_tokens_ = layer_tokens;
  Model& run_model = *reference.model_;
  const auto width = static_cast<size_t>(run_model.config().n_embedding);
  reference.layers_.resize(static_cast<size_t>(run_model.config().n_layers) + 2);
  const size_t keep = static_cast<size_t>(layer_tokens) * width;
  const LayerTap tap(run_model, [&](int layer, std::span<const float> hidden) {
    std::vector<float>& kept = reference.layers_[static_cast<size_t>(layer + 1)];
    const size_t room = keep - std::min(keep, kept.size());
    kept.insert(kept.end(), hidden.begin(),
                hidden.begin() + static_cast<int64_t>(std::min(room, hidden.size())));
  });

  ASSIGN_OR_RETURN(SequenceRunner runner, SequenceRunner::create(run_model, reference.text_.longest()));
  int64_t done = 0;
  for (const QualitySequence& sequence : reference.text_.sequences) {
    std::vector<float>& rows = reference.hidden_.emplace_back();
    RETURN_IF_ERROR(
        runner.run(sequence, [&](int first, int n, std::span<const float> hidden) -> Result<void> {
          const int from = std::clamp(first_row(sequence), first, first + n);
          const int to = std::clamp(end_row(sequence), first, first + n);
          if (from < to) {
            rows.insert(rows.end(),
                        hidden.begin() + static_cast<int64_t>(static_cast<size_t>(from - first) * width),
                        hidden.begin() + static_cast<int64_t>(static_cast<size_t>(to - first) * width));
          }
          done += n;
          if (progress && !progress(done, reference.text_.n_tokens())) return cancelled();
          return {};
        }));
  }
  return reference;
}

Result<QualityRecord> QualityReference::compare(Model& candidate, const QualityProgress& progress) {
  const ModelConfig& config = model_->config();
  if (candidate.config().n_vocab != config.n_vocab || candidate.config().n_embedding != config.n_embedding) {
    return fail(ErrorCode::kInvalidArgument, candidate.config().name,
                "is not a precision of the reference {}", config.name);
  }
  const auto width = static_cast<size_t>(config.n_embedding);
  const auto n_vocab = static_cast<size_t>(config.n_vocab);
  std::vector<LayerSums> layer_sums(layers_.size());
  size_t layer_offset = 0;  // values of earlier pieces
  size_t piece_values = 0;
  const LayerTap tap(candidate, [&](int layer, std::span<const float> hidden) {
    add_layer(hidden, layers_[static_cast<size_t>(layer + 1)], layer_offset,
              layer_sums[static_cast<size_t>(layer + 1)]);
    piece_values = hidden.size();
  });

  const int batch = std::min({kRowsAtOnce, candidate.max_batch_tokens(), model_->max_batch_tokens()});
  std::vector<float> reference_logits(static_cast<size_t>(batch) * n_vocab);
  std::vector<float> candidate_logits(static_cast<size_t>(batch) * n_vocab);
  std::vector<Divergence> divergences(static_cast<size_t>(batch));
  ThreadPool threads(candidate.backend().n_threads());
  Tally tally;
  ASSIGN_OR_RETURN(SequenceRunner runner, SequenceRunner::create(candidate, text_.longest()));
  int64_t done = 0;
  for (size_t s = 0; s < text_.sequences.size(); ++s) {
    const QualitySequence& sequence = text_.sequences[s];
    tally.sequences.emplace_back(0.0, 0);
    RETURN_IF_ERROR(
        runner.run(sequence, [&](int first, int n, std::span<const float> hidden) -> Result<void> {
          layer_offset += piece_values;
          const int to = std::clamp(end_row(sequence), first, first + n);
          for (int row = std::clamp(first_row(sequence), first, first + n); row < to;) {
            const int count = std::min(batch, to - row);
            project_positions(candidate, sequence, row, count,
                              hidden.subspan(static_cast<size_t>(row - first) * width), candidate_logits);
            project_positions(
                *model_, sequence, row, count,
                std::span(hidden_[s]).subspan(static_cast<size_t>(row - first_row(sequence)) * width),
                reference_logits);
            threads.parallel_for(count, [&](int64_t i) {
              const size_t at = static_cast<size_t>(i) * n_vocab;
              divergences[static_cast<size_t>(i)] =
                  compare_logits(std::span(reference_logits).subspan(at, n_vocab),
                                 std::span(candidate_logits).subspan(at, n_vocab),
                                 sequence.tokens[static_cast<size_t>(row + i + 1)], kTopK);
            });
            for (int i = 0; i < count; ++i) tally.add(divergences[static_cast<size_t>(i)]);
            row += count;
          }
          done += n;
          if (progress && !progress(done, text_.n_tokens())) return cancelled();
          return {};
        }));
  }

  QualityRecord record;
  record.reference = model_->precision();
  record.candidate = candidate.precision();
  record.text = text_.source();
  fill(tally, record);
  for (size_t i = 0; i < layer_sums.size(); ++i) {
    if (!(layer_sums[i].reference > 0)) continue;
    record.layers.push_back(
        {static_cast<int>(i) - 1, std::sqrt(layer_sums[i].difference / layer_sums[i].reference)});
  }
  return record;
}

Result<Perplexity> measure_perplexity(Model& model, const QualityText& text,
                                      const QualityProgress& progress) {
  const auto width = static_cast<size_t>(model.config().n_embedding);
  const auto n_vocab = static_cast<size_t>(model.config().n_vocab);
  const int batch = std::min(kRowsAtOnce, model.max_batch_tokens());
  std::vector<float> logits(static_cast<size_t>(batch) * n_vocab);
  std::vector<double> losses;
  ThreadPool threads(model.backend().n_threads());
  ASSIGN_OR_RETURN(SequenceRunner runner, SequenceRunner::create(model, text.longest()));
  int64_t done = 0;
  for (const QualitySequence& sequence : text.sequences) {
    RETURN_IF_ERROR(
        runner.run(sequence, [&](int first, int n, std::span<const float> hidden) -> Result<void> {
          const int to = std::clamp(end_row(sequence), first, first + n);
          for (int row = std::clamp(first_row(sequence), first, first + n); row < to;) {
            const int count = std::min(batch, to - row);
            project_positions(model, sequence, row, count,
                              hidden.subspan(static_cast<size_t>(row - first) * width), logits);
            const size_t base = losses.size();
            losses.resize(base + static_cast<size_t>(count));
            threads.parallel_for(count, [&](int64_t i) {
              losses[base + static_cast<size_t>(i)] = negative_log_likelihood(
                  std::span(logits).subspan(static_cast<size_t>(i) * n_vocab, n_vocab),
                  sequence.tokens[static_cast<size_t>(row + i + 1)]);
            });
            row += count;
          }
          done += n;
          if (progress && !progress(done, text.n_tokens())) return cancelled();
          return {};
        }));
  }
  if (losses.empty()) return fail(ErrorCode::kInvalidArgument, text.name, "has no position to score");
  const double value = std::exp(mean(losses));
  return Perplexity{
      .value = value,
      .standard_error = value * standard_deviation(losses) / std::sqrt(static_cast<double>(losses.size())),
      .n_scored = static_cast<int64_t>(losses.size())};
}

}  // namespace assay
