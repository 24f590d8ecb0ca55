// Calibrated weights on small models that have every feature: shared value heads, biases, tied embeddings.
#include "model/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "model/input_statistics.h"
#include "model/json_data.h"
#include "model/synthetic_model.h"

namespace assay {
namespace {

using test::must;
using test::SyntheticModel;

std::vector<std::string> recorded_names() {
  std::vector<std::string> names;
  const auto data = test::read_data("reference.json");
  for (const auto& recorded : data.at("synthetic").as_array()) {
    names.emplace_back(recorded.at("name").as_string());
  }
  return names;
}

SyntheticModel recorded_model(std::string_view name) {
  const auto data = test::read_data("reference.json");
  for (const auto& recorded : data.at("synthetic").as_array()) {
    if (recorded.at("name").as_string() == name) return SyntheticModel(recorded.at("config").as_object());
  }
  throw std::runtime_error("no such model");
}

std::vector<std::vector<int32_t>> random_text(int n_vocab, int n_sequences, int n_tokens, uint64_t seed) {
  Random random(seed, "text");
  std::vector<std::vector<int32_t>> text(static_cast<size_t>(n_sequences));
  for (auto& sequence : text) {
    for (int i = 0; i < n_tokens; ++i) {
      sequence.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(n_vocab))));
    }
  }
  return text;
}

struct Prepared {
  std::filesystem::path path;
  ModelConfig config;
  std::vector<std::vector<int32_t>> text;
};

Prepared prepare(SyntheticModel& model) {
  Prepared p{.path = model.write(), .config = {}, .text = {}};
  p.config = must(ModelConfig::read(must(Checkpoint::open(p.path))));
  p.text = random_text(p.config.n_vocab, 6, std::min(24, p.config.context_length), 1);
  return p;
}

CalibratedWeights calibrate_at(const Prepared& p, std::string_view precision, int n_threads = 2,
                               CalibrationOptions options = {}) {
  return must(calibrate(must(Checkpoint::open(p.path)), must(parse_precision(precision)),
                        must(make_cpu_backend("auto", n_threads)), p.text, options));
}

// Hidden states of an unseen sequence.
std::vector<float> hidden_at(const Prepared& p, std::string_view precision) {
  const Precision parsed = must(parse_precision(precision));
  LoadOptions options{.max_batch_tokens = 32};
  if (needs_calibration(parsed)) {
    options.calibrated = std::make_shared<CalibratedWeights>(calibrate_at(p, precision));
  }
  const std::unique_ptr<Model> model = must(Model::load(
      must(Checkpoint::open(p.path)), parsed, must(make_cpu_backend("auto", 1)), std::move(options)));
  test::Runner runner(*model, 64);
  return runner.run(random_text(p.config.n_vocab, 1, std::min(20, p.config.context_length), 2)[0]);
}

double relative_error(const std::vector<float>& reference, const std::vector<float>& other) {
  double error = 0, signal = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    error += std::pow(static_cast<double>(reference[i] - other[i]), 2);
    signal += std::pow(static_cast<double>(reference[i]), 2);
  }
  return std::sqrt(error / signal);
}

// Int8 loses little, so any scale that was not folded back, into norms, value rows, up rows or biases, shows as an
// error of tens of percent (the factor covers that these random models amplify rounding differently): the
// inputs' sizes are made to differ a hundredfold.
TEST(Calibration, awq_scales_are_folded_into_what_produces_the_input) {
  for (const std::string& name : recorded_names()) {
    SCOPED_TRACE(name);
    SyntheticModel model = recorded_model(name);
    Random random(3, "sizes");
    for (const char* tensor : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "blk.1.attn_norm.weight"}) {
      for (float& value : model.values(tensor)) value *= static_cast<float>(std::exp(random.normal()));
    }
    const Prepared p = prepare(model);
    const CalibratedWeights weights = calibrate_at(p, "w=int8:32/awq");
    ASSERT_EQ(weights.matrices.size(), 7U * static_cast<size_t>(p.config.n_layers));
    ASSERT_TRUE(weights.vectors.contains("blk.0.attn_norm.weight"));
    const std::vector<float> reference = hidden_at(p, "w=f32");
    const double plain = relative_error(reference, hidden_at(p, "w=int8:32"));
    EXPECT_LT(relative_error(reference, hidden_at(p, "w=int8:32/awq")), 2.5 * plain + 0.002);
    EXPECT_LT(relative_error(reference, hidden_at(p, "w=int8:32/gptq")), 2.5 * plain + 0.002);
  }
}

TEST(Calibration, compensated_codes_lose_less_than_nearest_ones) {
  SyntheticModel model = recorded_model("plain");
  Prepared p = prepare(model);
  p.text = random_text(p.config.n_vocab, 40, std::min(24, p.config.context_length), 1);
  const std::vector<float> reference = hidden_at(p, "w=f32");
  const std::string exempt = " !embedding@*=f32 !output@*=f32";
  const double plain = relative_error(reference, hidden_at(p, "w=int4:32" + exempt));
  EXPECT_LT(relative_error(reference, hidden_at(p, "w=int4:32/gptq" + exempt)), 0.9 * plain);
  EXPECT_LT(relative_error(reference, hidden_at(p, "w=int4:32/awq" + exempt)), 1.05 * plain);
}

TEST(Calibration, passes_and_threads_change_no_bit) {
  SyntheticModel model = recorded_model("plain");
  const Prepared p = prepare(model);
  const std::string precision = "w=int4:32/gptq !down@*=int4:32/block50/gptq !up@0=int8:16/awq !gate@1=bf16";
  const CalibratedWeights whole = calibrate_at(p, precision, 1);
  const CalibratedWeights pieces = calibrate_at(p, precision, 3, {.memory_bytes = 1});
  ASSERT_EQ(whole.matrices.size(), pieces.matrices.size());
  EXPECT_FALSE(whole.matrices.contains("blk.1.ffn_gate.weight"));
  EXPECT_TRUE(whole.matrices.at("blk.0.ffn_down.weight").is_sparse());
  EXPECT_TRUE(whole.vectors.empty());  // up alone is AWQ: gate reads the same input, nothing can be scaled
  for (const auto& [name, matrix] : whole.matrices) {
    const PackedMatrix& other = pieces.matrices.at(name);
    ASSERT_EQ(matrix.codes.size(), other.codes.size());
    EXPECT_EQ(std::memcmp(matrix.codes.data(), other.codes.data(), matrix.codes.size()), 0) << name;
    EXPECT_EQ(std::memcmp(matrix.scales.data(), other.scales.data(), matrix.scales.size()), 0) << name;
  }
}

TEST(Calibration, precision_without_its_weights_is_refused) {
  SyntheticModel model = recorded_model("plain");
  const Prepared p = prepare(model);
  const auto load = [&](std::string_view precision, std::shared_ptr<CalibratedWeights> weights) {
    return Model::load(must(Checkpoint::open(p.path)), must(parse_precision(precision)),
                       must(make_cpu_backend("auto", 1)),
                       {.max_batch_tokens = 8, .calibrated = std::move(weights)});
  };
  const auto none = load("w=int4:32/gptq", nullptr);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(none.error().message().find("needs calibrated weights"), std::string::npos);

  auto wrong = std::make_shared<CalibratedWeights>(calibrate_at(p, "w=int4:32/gptq"));
  std::swap(wrong->matrices.at("blk.0.ffn_down.weight"), wrong->matrices.at("blk.0.attn_q.weight"));
  const auto swapped = load("w=int4:32/gptq", wrong);
  ASSERT_FALSE(swapped.has_value());
  EXPECT_EQ(swapped.error().code, ErrorCode::kCorrupt);

  const auto empty = calibrate(must(Checkpoint::open(p.path)), must(parse_precision("w=int4:32/gptq")),
                               must(make_cpu_backend("auto", 1)), {});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalidArgument);
}

TEST(Calibration, tables_outside_layers_take_nearest_codes) {
  SyntheticModel model = recorded_model("plain");
  const Prepared p = prepare(model);
  const auto loaded = must(Model::load(
      must(Checkpoint::open(p.path)), must(parse_precision("w=int4:32/block50/gptq a=int8")),
      must(make_cpu_backend("auto", 1)),
      {.max_batch_tokens = 8,
       .calibrated = std::make_shared<CalibratedWeights>(calibrate_at(p, "w=int4:32/block50/gptq"))}));
  int n_plain = 0;
  for (const EffectiveFormat& format : loaded->effective_formats()) {
    if (format.tensor == "token_embd.weight" || format.tensor == "output.weight") {
      EXPECT_EQ(to_string(format.executed), "int4:32");
      ++n_plain;
    }
  }
  EXPECT_EQ(n_plain, 2);
}

TEST(Calibration, what_runs_is_reported) {
  SyntheticModel model = recorded_model("plain");
  const Prepared p = prepare(model);
  const auto loaded = must(Model::load(must(Checkpoint::open(p.path)),
                                       must(parse_precision("w=int4:32/block50/fit a=int8")),
                                       must(make_cpu_backend("auto", 1)), {.max_batch_tokens = 8}));
  for (const EffectiveFormat& format : loaded->effective_formats()) {
    if (format.tensor == "token_embd.weight") {
      EXPECT_EQ(to_string(format.executed), "int4:32/fit");
    }
    if (format.tensor == "blk.0.ffn_up.weight") {
      EXPECT_EQ(to_string(format.executed), "int4:32/block50/fit");
    }
  }
}

// Against sums in double over the activations that the model hands out.
TEST(InputStatistics, are_those_of_the_activations) {
  SyntheticModel synthetic = recorded_model("plain");
  const Prepared p = prepare(synthetic);
  const auto model = test::load_model(p.path, "w=f32", 2, {.max_batch_tokens = 7});
  const LayerStatistics found = must(collect_input_statistics(*model, p.text, 1, 1, true));
  ASSERT_EQ(found.first_layer, 1);
  ASSERT_EQ(found.layers.size(), 1U);
  std::array<std::vector<std::vector<float>>, kMatrixInputs> rows;
  model->set_input_observer([&](int layer, MatrixInput input, const ActivationView& x) {
    if (layer != 1) return;
    for (int64_t r = 0; r < x.n_rows; ++r) {
      const float* row = static_cast<const float*>(x.values) + r * x.stride;
      rows[static_cast<size_t>(input)].emplace_back(row, row + x.n_cols);
    }
  });
  for (const auto& sequence : p.text) {
    test::Runner runner(*model, 64);
    for (size_t first = 0; first < sequence.size(); first += 7) {
      runner.run(std::span(sequence).subspan(first, std::min<size_t>(7, sequence.size() - first)));
    }
  }
  for (size_t input = 0; input < kMatrixInputs; ++input) {
    const InputStatistics& statistics = found.layers[0][input];
    const size_t n = rows[input].at(0).size(), n_rows = rows[input].size();
    ASSERT_EQ(statistics.n_rows, static_cast<int64_t>(n_rows));
    ASSERT_EQ(statistics.gram.size(), n * n);
    for (size_t i = 0; i < n; ++i) {
      double magnitude = 0, square = 0;
      for (const auto& row : rows[input]) {
        magnitude += std::abs(static_cast<double>(row[i]));
        square += static_cast<double>(row[i]) * static_cast<double>(row[i]);
      }
      const auto count = static_cast<double>(n_rows);
      ASSERT_NEAR(statistics.mean_magnitude[i], magnitude / count, 1e-6 * magnitude / count);
      ASSERT_NEAR(statistics.mean_square[i], square / count, 1e-6 * square / count);
      for (size_t j = 0; j < n; ++j) {
        double sum = 0, terms = 0;
        for (const auto& row : rows[input]) {
          const double term = static_cast<double>(row[i]) * static_cast<double>(row[j]);
          sum += term;
          terms += std::abs(term);
        }
        ASSERT_NEAR(statistics.gram[i * n + j], sum, terms * (count + 2) * 0x1p-24);
      }
    }
  }
}

TEST(InputStatistics, integer_activations_and_empty_texts_are_refused) {
  SyntheticModel synthetic = recorded_model("plain");
  const Prepared p = prepare(synthetic);
  EXPECT_FALSE(collect_input_statistics(*test::load_model(p.path, "w=f32 a=int8"), p.text, 0, 1, false).has_value());
  EXPECT_FALSE(collect_input_statistics(*test::load_model(p.path, "w=f32"), {}, 0, 1, false).has_value());
  const auto stopped = collect_input_statistics(*test::load_model(p.path, "w=f32"), p.text, 0, 1, false,
                                                [](double) { return false; });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace assay
