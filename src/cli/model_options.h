// The flags that every command taking a model shares, and what they mean.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "base/error.h"
#include "engine/loaded_model.h"
#include "kernels/backend.h"
#include "numeric/precision.h"

namespace assay {

struct ModelOptions {
  std::string model;             // path or short name
  std::string weights = "file";  // file, f32, bf16, int8, int4:32, ...
  std::string
      activations;        // one format for both phases, or prefill/decode; empty: the default for the weights
  std::string kv;         // one format for both, or key/value; empty: bf16
  std::string precision;  // the whole thing in one text; wins over the three above
  int threads = 0;
  bool pin_threads = false;
  std::string isa = "auto";
  int context = 0;
  std::string calibration;  // text to calibrate on; empty: text that the model writes
};

// --weights --activations --kv --precision --threads --pin-threads --isa --context --calibration
void add_precision_options(CLI::App& app, ModelOptions& options);

// Default activations: int8 for integer weights (and files that hold them), bf16 for 16-bit and fp8, f32 for
// f32. `checkpoint_is_integer` tells what "file" means.
Result<Precision> precision_of(const ModelOptions& options, bool checkpoint_is_integer);

// Resolves the model, makes the backend, loads. Shows a progress line on a terminal when `show_progress`.
Result<LoadedModel> load_model(const ModelOptions& options, int max_batch_tokens, bool show_progress);

}  // namespace assay
