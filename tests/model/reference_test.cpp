// The f32 path against logits computed in float64 numpy (record_reference.py), on every instruction set.
#include <gtest/gtest.h>

#include <cmath>

#include "model/json_data.h"
#include "model/rope_table.h"
#include "model/synthetic_model.h"

namespace assay {
namespace {

using test::must;

// Two f32 computations that differ in the order of additions lie about as far from each other as each does
// from float64, and the recorded f32_error is one draw of that distance; a wrong formula is off by orders of
// magnitude more.
constexpr double kErrors = 8;

void expect_logits(Model& model, const boost::json::object& recorded) {
  const auto tokens = test::ids_of(recorded.at("tokens"));
  const double tolerance = kErrors * recorded.at("f32_error").to_number<double>();
  test::Runner runner(model);
  const std::vector<float> hidden = runner.run(tokens);
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  for (const auto& row : recorded.at("rows").as_array()) {
    const auto position = static_cast<size_t>(row.at("position").as_int64());
    const auto logits =
        runner.logits_of_last(std::span(hidden).first((position + 1) * n_embedding), Phase::kPrefill);
    const auto ids = test::ids_of(row.at("ids"));
    for (size_t i = 0; i < ids.size(); ++i) {
      const double expected = row.at("logits").at(i).to_number<double>();
      EXPECT_NEAR(logits[static_cast<size_t>(ids[i])], expected, tolerance)
          << "position " << position << " id " << ids[i];
    }
    const float best = *std::ranges::max_element(logits);
    EXPECT_NEAR(best, row.at("logits").at(0).to_number<double>(), tolerance);
  }
}

void expect_file(const std::filesystem::path& path, const char* name, std::string_view precision,
                 std::string_view isa) {
  if (!make_cpu_backend(isa, 1)) return;
  SCOPED_TRACE(isa);
  const auto model = test::load_model(path, precision, 2, {.max_batch_tokens = 256}, isa);
  expect_logits(*model, test::read_data("reference.json").at("files").at(name).as_object());
}

constexpr std::string_view kIsas[] = {"portable", "avx2", "avx512"};

TEST(Reference, stories_gguf_agrees_with_float64) {
  SKIP_WITHOUT(test::stories_path());
  for (const auto isa : kIsas) expect_file(test::stories_path(), "stories260K", "w=f32 a=f32 kv=f32", isa);
}

TEST(Reference, tinystories_safetensors_agrees_with_float64) {
  const auto path = test::shared_data("models/tinystories-656k");
  SKIP_WITHOUT(path);
  for (const auto isa : kIsas) expect_file(path, "tinystories-656k", "w=f32 a=f32 kv=f32", isa);
}

TEST(Reference, smollm_as_shipped_and_as_f32_agree_with_float64) {
  SKIP_WITHOUT(test::smollm_path());
  expect_file(test::smollm_path(), "SmolLM2-135M-Instruct.Q4_1", "w=file a=f32 kv=f32", "auto");
  expect_file(test::smollm_path(), "SmolLM2-135M-Instruct.Q4_1", "w=f32 a=f32 kv=f32", "auto");
}

// Ties, biases, head shapes, rope scalings, windows: a model for each.
TEST(Reference, synthetic_models_agree_with_float64) {
  const auto data = test::read_data("reference.json");
  for (const auto& recorded : data.at("synthetic").as_array()) {
    SCOPED_TRACE(recorded.at("name").as_string().c_str());
    const auto& config = recorded.at("config").as_object();
    test::SyntheticModel synthetic(config);
    const LoadOptions options{.max_batch_tokens = 64,
                              .max_context = static_cast<int>(config.at("max_context").as_int64())};
    for (const auto isa : kIsas) {
      if (!make_cpu_backend(isa, 1)) continue;
      SCOPED_TRACE(isa);
      const auto model = test::load_model(synthetic.write(), "w=f32 a=f32 kv=f32", 1, options, isa);
      expect_logits(*model, recorded.as_object());
    }
  }
}

TEST(RopeTable, frequencies_of_every_scaling_agree_with_closed_formulas) {
  const auto data = test::read_data("reference.json");
  for (const auto& recorded : data.at("synthetic").as_array()) {
    if (recorded.at("name").as_string() == "factors") continue;  // recorded before the factors are applied
    SCOPED_TRACE(recorded.at("name").as_string().c_str());
    test::SyntheticModel synthetic(recorded.at("config").as_object());
    const auto config = must(ModelConfig::read(must(Checkpoint::open(synthetic.write()))));
    const auto max_context = static_cast<int>(recorded.at("config").at("max_context").as_int64());
    const auto frequencies = rope_frequencies(config, max_context);
    const auto& expected = recorded.at("frequencies").as_array();
    ASSERT_EQ(frequencies.size(), expected.size());
    for (size_t i = 0; i < frequencies.size(); ++i) {
      EXPECT_NEAR(frequencies[i] / expected[i].to_number<double>(), 1,
                  1e-6);  // theta and factors are f32 in the file
    }
    // Every entry of the table is the double result, rounded once.
    const RopeTable table = must(RopeTable::create(config, max_context, 2));
    for (int position = 0; position < max_context; ++position) {
      for (int pair = 0; pair < table.n_pairs(); ++pair) {
        const double angle = position * frequencies[static_cast<size_t>(pair)];
        EXPECT_EQ(table.cosines(position)[pair],
                  static_cast<float>(config.yarn_attention_factor * std::cos(angle)));
        EXPECT_EQ(table.sines(position)[pair],
                  static_cast<float>(config.yarn_attention_factor * std::sin(angle)));
      }
    }
  }
}

}  // namespace
}  // namespace assay
