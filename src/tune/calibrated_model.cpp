#include "tune/calibrated_model.h"

#include <xxhash.h>

#include "base/file.h"
#include "model/calibration.h"
#include "modelfile/weight_kind.h"
#include "tune/calibrated_store.h"
#include "tune/calibration_text.h"
#include "tune/model_identity.h"

namespace assay {
namespace {

constexpr uint64_t kTextSeed = 1;
// Changes whenever calibrated weights would: they are found again only under the same number.
constexpr int kMethodVersion = 1;

// The weights part of a precision alone: activations and KV formats do not matter.
std::string weights_text(const Precision& precision) {
  Precision weights;
  weights.weights = precision.weights;
  weights.exemptions = precision.exemptions;
  return to_string(weights);
}

Result<std::string> key_of(const std::filesystem::path& path, const Precision& precision, const Backend& backend,
                           const std::optional<std::string>& text) {
  ASSIGN_OR_RETURN(const ModelIdentity identity, identify_model(path));
  const std::string source =
      text ? fmt::format("file:{:016x}", XXH64(text->data(), text->size(), 0))
           : fmt::format("own:{}:{}:{}", kTextSeed, kCalibrationSequences, kCalibrationTokens);
  const std::string name = backend.name();  // the table, not the number of threads
  return fmt::format("{}|{}|{}|{}|{}", kMethodVersion, identity.hash, weights_text(precision), source,
                     name.substr(0, name.find(',')));
}

// What writes the text: the checkpoint's own formats at the fastest activations.
Precision writer_precision(const Checkpoint& checkpoint) {
  Precision precision;
  precision.weights.as_shipped = true;
  const Format activations = holds_integer_weights(checkpoint) ? Format::kInt8 : Format::kBF16;
  precision.prefill_activations = precision.decode_activations = activations;
  precision.kv_key = precision.kv_value = Format::kBF16;
  return precision;
}

Result<CalibratedWeights> make_weights(const std::filesystem::path& path, const Precision& precision,
                                       const std::shared_ptr<Backend>& backend,
                                       const std::optional<std::string>& text, const CalibrationSource& source) {
  const auto report = [&](const char* what, double share) {
    return !source.progress || source.progress(what, share);
  };
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  std::vector<std::vector<int32_t>> sequences;
  {
    ASSIGN_OR_RETURN(const LoadedModel writer,
                     LoadedModel::load(path, writer_precision(checkpoint), backend, {}));
    if (text) {
      ASSIGN_OR_RETURN(sequences, cut_calibration_text(writer, *text));
    } else {
      ASSIGN_OR_RETURN(sequences, write_calibration_text(writer, kTextSeed, [&](double share) {
                         return report("writing text to calibrate on", share);
                       }));
    }
  }
  CalibrationOptions options;
  options.progress = [&](double share) { return report("calibrating", share); };
  return calibrate(checkpoint, precision, backend, sequences, options);
}

}  // namespace

Result<LoadedModel> load_calibrated(const std::filesystem::path& path, const Precision& precision,
                                    std::shared_ptr<Backend> backend, LoadOptions options,
                                    const CalibrationSource& source) {
  if (!needs_calibration(precision)) return LoadedModel::load(path, precision, std::move(backend), std::move(options));
  std::optional<std::string> text;
  if (source.text) {
    ASSIGN_OR_RETURN(text, read_file(*source.text));
  }
  ASSIGN_OR_RETURN(const std::string key, key_of(path, precision, *backend, text));
  const auto store = CalibratedStore::open(source.store.empty() ? assay_home() / "calibrated" : source.store);
  std::optional<CalibratedWeights> weights;
  if (store) weights = store->find(key);
  if (!weights) {
    ASSIGN_OR_RETURN(weights, make_weights(path, precision, backend, text, source));
    if (store) (void)store->keep(key, *weights);
  }
  options.calibrated = std::make_shared<CalibratedWeights>(std::move(*weights));
  return LoadedModel::load(path, precision, std::move(backend), std::move(options));
}

}  // namespace assay
