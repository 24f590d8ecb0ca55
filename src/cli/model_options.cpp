#include "cli/model_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/known_models.h"
#include "modelfile/checkpoint.h"
#include "modelfile/weight_kind.h"
#include "tune/calibrated_model.h"

namespace assay {
namespace {

struct FormatPair {
  Format first;
  Format second;
};

// "int8" or "bf16/int8".
Result<FormatPair> parse_pair(std::string_view flag, std::string_view text) {
  const size_t slash = text.find('/');
  auto first = parse_format(text.substr(0, slash));
  if (!first) return std::unexpected(first.error().within(flag));
  if (slash == std::string_view::npos) return FormatPair{*first, *first};
  auto second = parse_format(text.substr(slash + 1));
  if (!second) return std::unexpected(second.error().within(flag));
  return FormatPair{*first, *second};
}

Format default_activations(const WeightFormat& weights, bool checkpoint_is_integer) {
  if (weights.as_shipped) return checkpoint_is_integer ? Format::kInt8 : Format::kF32;
  if (is_integer(weights.format)) return Format::kInt8;
  return weights.format == Format::kF32 ? Format::kF32 : Format::kBF16;
}

}  // namespace

void add_precision_options(CLI::App& app, ModelOptions& options) {
  app.add_option(
         "--weights", options.weights,
         "weight format: file (as shipped), f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8[:group], int4[:group]; "
         "behind a group /fit, /awq or /gptq, and for int4 /block50 or /global50 (docs/quantisation.md)")
      ->capture_default_str();
  app.add_option("--activations", options.activations,
                 "activation format (f32, bf16, int8), or prefill/decode");
  app.add_option("--kv", options.kv,
                 "KV cache format (f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4), or key/value; default bf16");
  app.add_option("--precision", options.precision,
                 "a whole precision, e.g. \"w=int4:32 a=int8 kv=bf16/int8\"");
  app.add_option("--calibration", options.calibration,
                 "text that awq and gptq calibrate on; default: text that the model writes");
  app.add_option("--threads", options.threads, "threads; 0: every CPU this process may use")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--pin-threads", options.pin_threads, "keep each thread on one CPU, physical cores first");
  app.add_option("--isa", options.isa, "kernel table: auto, portable, avx2, avx512")->capture_default_str();
  app.add_option("--context", options.context, "longest context in tokens; 0: the model's")
      ->check(CLI::Range(0, 1 << 24));
}

Result<Precision> precision_of(const ModelOptions& options, bool checkpoint_is_integer) {
  if (!options.precision.empty()) return parse_precision(options.precision);
  Precision precision;
  auto weights = parse_weight_format(options.weights);
  if (!weights) return std::unexpected(weights.error().within("--weights"));
  precision.weights = *weights;
  const Format standard = default_activations(*weights, checkpoint_is_integer);
  precision.prefill_activations = precision.decode_activations = standard;
  if (!options.activations.empty()) {
    ASSIGN_OR_RETURN(const FormatPair pair, parse_pair("--activations", options.activations));
    precision.prefill_activations = pair.first;
    precision.decode_activations = pair.second;
  }
  precision.kv_key = precision.kv_value = Format::kBF16;
  if (!options.kv.empty()) {
    ASSIGN_OR_RETURN(const FormatPair pair, parse_pair("--kv", options.kv));
    precision.kv_key = pair.first;
    precision.kv_value = pair.second;
  }
  return precision;
}

Result<LoadedModel> load_model(const ModelOptions& options, int max_batch_tokens, bool show_progress) {
  ASSIGN_OR_RETURN(const std::filesystem::path path, resolve_model(options.model));
  bool integers = false;
  {
    ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
    integers = holds_integer_weights(checkpoint);
  }
  ASSIGN_OR_RETURN(const Precision precision, precision_of(options, integers));
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend,
                   make_cpu_backend(options.isa, options.threads, options.pin_threads));
  LoadOptions load;
  load.max_batch_tokens = max_batch_tokens;
  load.max_context = options.context;
  const bool show = show_progress && ::isatty(STDERR_FILENO) != 0;
  if (show) {
    load.progress = [](double share) {
      std::fprintf(stderr, "\rloading %3.0f %%", share * 100);
      return true;
    };
  }
  CalibrationSource source;
  if (!options.calibration.empty()) source.text = options.calibration;
  if (show) {
    source.progress = [](const std::string& what, double share) {
      std::fprintf(stderr, "\r\033[K%s %3.0f %%", what.c_str(), share * 100);
      return true;
    };
  }
  auto loaded = load_calibrated(path, precision, std::move(backend), std::move(load), source);
  if (show) std::fprintf(stderr, "\r\033[K");
  return loaded;
}

}  // namespace assay
