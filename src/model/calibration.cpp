#include "model/calibration.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "base/thread_pool.h"
#include "model/input_statistics.h"
#include "model/layer_calibration.h"

namespace assay {
namespace {

constexpr int kPieceTokens = 512;
constexpr double kCollectShare = 0.6;  // of a pass, roughly; the rest is quantising
constexpr Role kLayerRoles[] = {Role::kAttentionQuery, Role::kAttentionKey, Role::kAttentionValue,
                                Role::kAttentionOutput, Role::kGate, Role::kUp, Role::kDown};

template <class Predicate>
bool any_layer_format(const Precision& precision, int layer, Predicate predicate) {
  return std::ranges::any_of(kLayerRoles,
                             [&](Role role) { return predicate(precision.weights_for(layer, role)); });
}

bool layer_needs_calibration(const Precision& precision, int layer) {
  return any_layer_format(precision, layer, [](const WeightFormat& f) { return f.needs_calibration(); });
}

bool layer_needs_products(const Precision& precision, int layer) {
  return any_layer_format(precision, layer, [](const WeightFormat& f) {
    return f.needs_calibration() && f.correction == Correction::kGptq;
  });
}

// Quantises the layers of one pass, spread over threads. The first error, in order of layers, is reported.
Result<void> quantise_layers(const Checkpoint& checkpoint, const ModelConfig& config, const Precision& precision,
                             LayerStatistics& statistics, int n_threads,
                             const std::function<bool(double)>& progress, CalibratedWeights& weights) {
  const auto n = static_cast<int64_t>(statistics.layers.size());
  ThreadPool pool(n_threads);
  std::mutex mutex;
  std::map<int64_t, Error> errors;
  std::atomic<int64_t> done{0};
  std::atomic<bool> stopped{false};
  const std::thread::id caller = std::this_thread::get_id();
  pool.parallel_for(n, [&](int64_t i) {
    if (stopped) return;
    auto& of_layer = statistics.layers[static_cast<size_t>(i)];
    auto layer = calibrate_layer(checkpoint, config, precision, statistics.first_layer + static_cast<int>(i),
                                 of_layer);
    of_layer = {};  // its products are not needed any more
    ++done;
    {
      const std::lock_guard lock(mutex);
      if (layer) {
        weights.matrices.merge(layer->matrices);
        weights.vectors.merge(layer->vectors);
      } else {
        errors.emplace(i, std::move(layer).error());
      }
    }
    if (progress && std::this_thread::get_id() == caller) {
      if (!progress(static_cast<double>(done) / static_cast<double>(n))) stopped = true;
    }
  });
  if (!errors.empty()) return std::unexpected(errors.begin()->second);
  if (stopped) return fail(ErrorCode::kCancelled, "calibration", "stopped on request");
  return {};
}

}  // namespace

uint64_t CalibratedWeights::bytes() const {
  uint64_t total = 0;
  for (const auto& [name, matrix] : matrices) total += matrix.bytes();
  for (const auto& [name, vector] : vectors) total += vector.size() * sizeof(float);
  return total;
}

bool needs_calibration(const Precision& precision) {
  if (layer_needs_calibration(precision, -1)) return true;
  return std::ranges::any_of(precision.exemptions, [](const Exemption& exemption) {
    return exemption.weights.needs_calibration() && exemption.role != Role::kEmbedding &&
           exemption.role != Role::kOutput;
  });
}

Result<CalibratedWeights> calibrate(const Checkpoint& checkpoint, const Precision& precision,
                                    std::shared_ptr<Backend> backend,
                                    std::span<const std::vector<int32_t>> sequences,
                                    const CalibrationOptions& options) {
  size_t longest = 1;
  for (const auto& sequence : sequences) longest = std::max(longest, sequence.size());
  ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::read(checkpoint));
  const int context = static_cast<int>(std::min(longest, static_cast<size_t>(config.context_length)));
  const int n_threads = backend->n_threads();
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   Model::load(checkpoint, Precision{}, std::move(backend),
                               {.max_batch_tokens = std::min(kPieceTokens, context), .max_context = context}));
  std::vector<int> wanted;
  for (int layer = 0; layer < config.n_layers; ++layer) {
    if (layer_needs_calibration(precision, layer)) wanted.push_back(layer);
  }
  CalibratedWeights weights;
  if (wanted.empty()) return weights;
  const int end = wanted.back() + 1;
  const bool products = std::ranges::any_of(wanted, [&](int l) { return layer_needs_products(precision, l); });
  const uint64_t per_layer = std::max<uint64_t>(gram_bytes_per_layer(config), 1);
  const int per_pass = products ? static_cast<int>(std::clamp<uint64_t>(options.memory_bytes / per_layer, 1, 1 << 20))
                                : config.n_layers;
  const int n_passes = (end - wanted.front() + per_pass - 1) / per_pass;
  for (int pass = 0; pass < n_passes; ++pass) {
    const int first = wanted.front() + pass * per_pass, n = std::min(per_pass, end - first);
    const auto report = [&](double from, double to, double share) {
      return !options.progress || options.progress((pass + from + (to - from) * share) / n_passes);
    };
    ASSIGN_OR_RETURN(LayerStatistics statistics,
                     collect_input_statistics(*model, sequences, first, n, products, [&](double share) {
                       return report(0, kCollectShare, share);
                     }));
    RETURN_IF_ERROR(quantise_layers(
        checkpoint, config, precision, statistics, n_threads,
        [&](double share) { return report(kCollectShare, 1, share); }, weights));
  }
  return weights;
}

}  // namespace assay
