// What each way of choosing codes and blocks loses, matrix by matrix, on a real model: the relative error of the
// weights, and that of the outputs on the activations calibrated on and on others.
//   quantiser_bench [--model FILE] [--text FILE] [--layer 15] [--json]
// Without --text the model writes both texts. Errors are squared and relative: 0.01 is 20 dB.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/figures.h"
#include "model/input_statistics.h"
#include "model/matrix_loader.h"
#include "model/matrix_quantiser.h"
#include "modelfile/checkpoint.h"
#include "numeric/error_statistics.h"
#include "numeric/gptq.h"
#include "tune/calibration_text.h"

namespace {

using namespace assay;

constexpr const char* kMethods[] = {"int4:32",         "int4:32/fit",           "int4:32/gptq",
                                    "int4:128",        "int4:128/fit",          "int4:128/gptq",
                                    "int4:64/block50", "int4:64/block50/gptq", "int4:64/global50",
                                    "int4:64/global50/gptq"};
struct Matrix {
  const char* name;
  MatrixInput input;
};
constexpr Matrix kMatrices[] = {{"attn_q", MatrixInput::kAttention},
                                {"attn_output", MatrixInput::kAttentionOutput},
                                {"ffn_up", MatrixInput::kFeedForward},
                                {"ffn_down", MatrixInput::kDown}};

std::string flag(int argc, char** argv, std::string_view name, std::string standard) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return argv[i + 1];
  }
  return standard;
}

void add_rows(std::vector<bench::Figure>& figures, const Tensor& tensor, const std::string& label,
              const InputStatistics& seen, const InputStatistics& other) {
  const std::vector<float> values = decode_matrix(tensor).value();
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  for (const char* text : kMethods) {
    const WeightFormat format = parse_weight_format(text).value();
    const HessianFactor factor =
        factor_hessian(seen.gram, cols,
                       format.sparsity == Sparsity::kNone ? ColumnOrder::kByGroup : ColumnOrder::kNatural,
                       format.group)
            .value();
    const bool calibrated = format.needs_calibration();
    const PackedMatrix packed =
        quantise_matrix(values, rows, cols, format,
                        calibrated ? InputMoments{seen.mean_square, &factor} : InputMoments{})
            .value();
    std::vector<float> back(values.size());
    for (int64_t row = 0; row < rows; ++row) {
      unpack_row(packed, row, std::span(back).subspan(static_cast<size_t>(row * cols), static_cast<size_t>(cols)));
    }
    const auto add = [&](const char* what, double value, int64_t samples) {
      figures.push_back({.figure = label + " " + text + ", " + what,
                         .value = value,
                         .unit = "relative",
                         .samples = static_cast<int>(samples),
                         .how = "quantiser_bench"});
    };
    const double weights = compare(values, back).relative_rms;
    add("weights", weights * weights, rows * cols);
    add("outputs, calibration text", relative_output_error(values, back, rows, seen.gram), seen.n_rows);
    add("outputs, other text", relative_output_error(values, back, rows, other.gram), other.n_rows);
  }
}

Result<int> run(int argc, char** argv) {
  const std::string path = flag(argc, argv, "--model",
                                (assay_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").string());
  const std::string text = flag(argc, argv, "--text", "");
  const int layer = std::atoi(flag(argc, argv, "--layer", "15").c_str());
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend, make_cpu_backend());
  ASSIGN_OR_RETURN(const LoadedModel model, LoadedModel::load(path, Precision{}, backend, {}));
  std::vector<std::vector<int32_t>> seen, other;
  ASSIGN_OR_RETURN(seen, write_calibration_text(model, 1, {}));
  if (text.empty()) {
    ASSIGN_OR_RETURN(other, write_calibration_text(model, 2, {}));
  } else {
    ASSIGN_OR_RETURN(const std::string content, read_file(text));
    ASSIGN_OR_RETURN(other, cut_calibration_text(model, content));
  }
  ASSIGN_OR_RETURN(const auto seen_statistics,
                   collect_input_statistics(*model.model(), seen, layer, 1, true));
  ASSIGN_OR_RETURN(const auto other_statistics,
                   collect_input_statistics(*model.model(), other, layer, 1, true));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  std::vector<bench::Figure> figures;
  for (const Matrix& matrix : kMatrices) {
    const std::string name = fmt::format("blk.{}.{}.weight", layer, matrix.name);
    const Tensor* tensor = checkpoint.find(name);
    if (tensor == nullptr) return fail(ErrorCode::kNotFound, name, "no such tensor");
    const auto input = static_cast<size_t>(matrix.input);
    add_rows(figures, *tensor, matrix.name, seen_statistics.layers[0][input], other_statistics.layers[0][input]);
  }
  return bench::print(figures, bench::wants_json(argc, argv));
}

}  // namespace

int main(int argc, char** argv) {
  const auto code = run(argc, argv);
  if (code) return *code;
  fmt::print(stderr, "{}\n", code.error().message());
  return 1;
}
