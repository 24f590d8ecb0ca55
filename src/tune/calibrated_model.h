// Loading a model at any precision: one that needs calibrated weights gets them from the store, or is calibrated
// first. What run, serve, quality and tune load models with.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/loaded_model.h"
#include "kernels/backend.h"

namespace assay {

struct CalibrationSource {
  // Calibrate on this file; none: on text that the model writes (calibration_text.h).
  std::optional<std::filesystem::path> text;
  std::filesystem::path store;  // folder of calibrated weights; empty: ~/.cache/assay/calibrated
  // Told what is being done and its share; return false to stop (kCancelled).
  std::function<bool(const std::string& what, double share)> progress;
};

// As LoadedModel::load(). Weights that could not be kept on disk are used all the same. Cost when nothing is
// stored: that of calibrate(), of writing the text, and one hash of the checkpoint.
Result<LoadedModel> load_calibrated(const std::filesystem::path& path, const Precision& precision,
                                    std::shared_ptr<Backend> backend, LoadOptions options,
                                    const CalibrationSource& source = {});

}  // namespace assay
