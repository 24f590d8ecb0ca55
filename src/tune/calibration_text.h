// The default text to calibrate on: what the model itself writes. No data set is needed, nothing that quality is
// measured on is seen, and the activations are those of the model's own distribution (Liu et al., "LLM-QAT", 2023,
// section 3.1, generate likewise from random first tokens).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "engine/loaded_model.h"

namespace assay {

inline constexpr int kCalibrationSequences = 32;
inline constexpr int kCalibrationTokens = 256;  // of each

// Even sequences start from a random token of the vocabulary; odd ones, where there is a chat template, from the
// opening of a user's turn, so that the model writes question and answer. Sampled from `seed`, at most as long as
// the context. progress: share done; return false to stop (kCancelled).
Result<std::vector<std::vector<int32_t>>> write_calibration_text(const LoadedModel& model, uint64_t seed,
                                                                 const std::function<bool(double)>& progress);

// A file's text cut into sequences of kCalibrationTokens, at most `most` of them, spread evenly over it.
// kInvalidArgument when it is shorter than one.
Result<std::vector<std::vector<int32_t>>> cut_calibration_text(const LoadedModel& model, std::string_view text,
                                                               int most = kCalibrationSequences);

}  // namespace assay
