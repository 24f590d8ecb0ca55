// Weights quantised by methods that look at activations (AWQ, GPTQ, and sparse masks by importance), for a whole
// model at once, because AWQ's scales are folded into the matrices and norms around.
//
// Only matrices inside layers are calibrated: embedding and output take nearest codes, since a table that
// is looked up has no inputs. AWQ scales the inputs of
//   query, key, value    by dividing the attention norm's weight
//   attention output     by dividing the value rows that produce it; heads that share a value head share scales
//   gate, up             by dividing the feed-forward norm's weight
//   down                 by dividing the up rows that produce it
// where all matrices that read an input, and the matrix that produces it, are AWQ; elsewhere inputs stay as they
// are and the format's scale and minimum are still fitted by the inputs' moments.
//
// Ownership: plain values, moved into Model::load(). Thread safety: one calibrate() at a time per backend.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "kernels/backend.h"
#include "kernels/packed_matrix.h"
#include "modelfile/checkpoint.h"
#include "numeric/precision.h"

namespace assay {

// By tensor name: what takes the place of the checkpoint's tensors.
struct CalibratedWeights {
  std::map<std::string, PackedMatrix> matrices;
  std::map<std::string, std::vector<float>> vectors;  // norms and biases that scales were folded into

  uint64_t bytes() const;
};

struct CalibrationOptions {
  // Of products of activations held at once; layers beyond that take another pass over the text. At least one
  // layer is held whatever this says.
  uint64_t memory_bytes = 2 * kGiB;
  std::function<bool(double)> progress;  // share done; return false to stop (kCancelled)
};

// The layer matrices of `precision` that need calibration, quantised with the activations of the checkpoint in
// f32 over `sequences`. Deterministic for a kernel table. Cost: the f32 model in memory; per pass over the text
// its prefill and n^2 multiply-adds per token and input; per matrix those of numeric/gptq.h and awq.h. Failure:
// as Model::load(), and kInvalidArgument when there are no tokens.
Result<CalibratedWeights> calibrate(const Checkpoint& checkpoint, const Precision& precision,
                                    std::shared_ptr<Backend> backend,
                                    std::span<const std::vector<int32_t>> sequences,
                                    const CalibrationOptions& options = {});

// True when some matrix of a layer needs calibrate().
bool needs_calibration(const Precision& precision);

}  // namespace assay
