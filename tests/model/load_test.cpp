// What load() accepts, refuses, shares and accounts for.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/memory.h"
#include "model/json_data.h"
#include "model/llama_workspace.h"
#include "model/matrix_loader.h"
#include "model/rope_table.h"
#include "model/synthetic_model.h"

namespace assay {
namespace {

using test::must;
using test::SyntheticModel;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SyntheticModel recorded_model(std::string_view name) {
  const auto data = test::read_data("reference.json");
  for (const auto& recorded : data.at("synthetic").as_array()) {
    if (recorded.at("name").as_string() == name) return SyntheticModel(recorded.at("config").as_object());
  }
  throw std::runtime_error("no such model");
}

Result<std::unique_ptr<Model>> load(const std::filesystem::path& path, std::string_view precision = "w=f32",
                                    LoadOptions options = {.max_batch_tokens = 32}) {
  auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) return std::unexpected(checkpoint.error());
  return Model::load(*checkpoint, must(parse_precision(precision)), must(make_cpu_backend("auto", 2)),
                     options);
}

void expect_refusal(const Result<std::unique_ptr<Model>>& loaded, ErrorCode code, std::string_view words) {
  ASSERT_FALSE(loaded.has_value()) << "expected a refusal with: " << words;
  EXPECT_EQ(loaded.error().code, code) << loaded.error().message();
  EXPECT_NE(loaded.error().message().find(words), std::string::npos) << loaded.error().message();
}

TEST(ModelLoad, missing_tensor_is_named) {
  for (const char* name :
       {"blk.1.ffn_down.weight", "output_norm.weight", "blk.0.attn_norm.weight", "token_embd.weight"}) {
    auto model = recorded_model("plain");
    model.erase_tensor(name);
    expect_refusal(load(model.write()), ErrorCode::kCorrupt, std::string(name) + " is missing");
  }
}

TEST(ModelLoad, wrong_shapes_are_named_with_both_shapes) {
  auto model = recorded_model("plain");
  model.set_tensor("blk.1.attn_k.weight", {8, 32});
  expect_refusal(load(model.write()), ErrorCode::kCorrupt,
                 "blk.1.attn_k.weight: expected shape [16, 32], found [8, 32]");
  model = recorded_model("plain");
  model.set_tensor("blk.0.ffn_norm.weight", {31});
  expect_refusal(load(model.write()), ErrorCode::kCorrupt, "blk.0.ffn_norm.weight");
  model = recorded_model("plain");
  model.set_tensor("token_embd.weight", {40, 16});
  expect_refusal(load(model.write()), ErrorCode::kCorrupt, "token_embd.weight: expected [vocabulary, 32]");
  model = recorded_model("attention_biases");
  model.set_tensor("blk.0.attn_q.bias", {33});
  expect_refusal(load(model.write()), ErrorCode::kCorrupt, "blk.0.attn_q.bias: expected 32 values");
}

TEST(ModelLoad, vocabulary_larger_than_the_embedding_is_refused) {
  auto model = recorded_model("plain");
  model.set("llama.vocab_size", int64_t{41});
  expect_refusal(load(model.write()), ErrorCode::kCorrupt,
                 "llama.vocab_size is 41, but token_embd.weight has 40 rows");
  model = recorded_model("plain");
  model.set("tokenizer.ggml.tokens",
            std::make_shared<const MetadataArray>(MetadataArray{std::vector<std::string>(41, "x")}));
  expect_refusal(load(model.write()), ErrorCode::kCorrupt,
                 "the vocabulary has 41 tokens, but token_embd.weight 40 rows");
}

TEST(ModelLoad, nan_and_infinity_are_refused_by_name_in_every_format) {
  for (const float bad :
       {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (const char* name : {"blk.1.ffn_up.weight", "blk.0.attn_norm.weight", "output.weight"}) {
      auto model = recorded_model("plain");
      model.values(name)[17] = bad;
      const auto& path = model.write();
      for (const char* precision : {"w=f32", "w=file", "w=bf16", "w=int8", "w=int4", "w=fp8_e4m3"}) {
        expect_refusal(load(path, precision), ErrorCode::kCorrupt, std::string(name) + ": value 17 is");
      }
    }
  }
}

TEST(ModelLoad, value_beyond_f16_is_refused_for_f16_alone) {
  auto model = recorded_model("plain");
  model.values("blk.1.ffn_up.weight")[3] = 70000;
  const auto& path = model.write();
  expect_refusal(load(path, "w=f16"), ErrorCode::kUnsupported, "beyond the range of f16");
  EXPECT_TRUE(load(path, "w=bf16").has_value());
}

TEST(ModelLoad, tensor_without_a_place_is_refused) {
  auto model = recorded_model("plain");
  model.set_tensor("blk.0.attn_q_norm.weight", {8});
  expect_refusal(load(model.write()), ErrorCode::kUnsupported, "blk.0.attn_q_norm.weight has no place");
}

TEST(ModelLoad, hostile_metadata_is_refused_with_its_key) {
  const struct {
    const char* key;
    MetadataValue value;
    ErrorCode code;
    const char* words;
  } cases[] = {
      {"general.architecture", std::string("mamba"), ErrorCode::kUnsupported,
       "'mamba' is not executed; supported are llama"},
      {"llama.block_count", int64_t{0}, ErrorCode::kCorrupt, "llama.block_count is 0"},
      {"llama.block_count", int64_t{3}, ErrorCode::kCorrupt, "blk.2.attn_norm.weight is missing"},
      {"llama.block_count", int64_t{1} << 40, ErrorCode::kCorrupt, "llama.block_count"},
      {"llama.embedding_length", int64_t{-32}, ErrorCode::kCorrupt, "llama.embedding_length"},
      {"llama.attention.head_count", int64_t{3}, ErrorCode::kCorrupt, "3 heads cannot share 2"},
      {"llama.attention.head_count_kv", int64_t{0}, ErrorCode::kCorrupt, "head_count_kv is 0"},
      {"llama.attention.value_length", int64_t{4}, ErrorCode::kUnsupported, "keys of 8 and values of 4"},
      {"llama.attention.key_length", int64_t{512}, ErrorCode::kUnsupported, "heads of 512 values"},
      {"llama.rope.dimension_count", int64_t{7}, ErrorCode::kCorrupt, "7 of 8 values"},
      {"llama.rope.dimension_count", int64_t{16}, ErrorCode::kCorrupt, "16 of 8 values"},
      {"llama.rope.freq_base", -1.0, ErrorCode::kCorrupt, "llama.rope.freq_base is -1"},
      {"llama.rope.scaling.type", std::string("longrope"), ErrorCode::kUnsupported,
       "'longrope' is not executed"},
      {"llama.attention.layer_norm_rms_epsilon", 0.0, ErrorCode::kCorrupt, "layer_norm_rms_epsilon is 0"},
      {"llama.expert_count", int64_t{8}, ErrorCode::kUnsupported, "mixture of 8 experts"},
      {"llama.context_length", std::string("many"), ErrorCode::kCorrupt, "llama.context_length"},
  };
  for (const auto& hostile : cases) {
    SCOPED_TRACE(hostile.key);
    auto model = recorded_model("plain");
    model.set(hostile.key, hostile.value);
    expect_refusal(load(model.write()), hostile.code, hostile.words);
  }
  for (const char* key :
       {"llama.block_count", "llama.context_length", "llama.attention.layer_norm_rms_epsilon"}) {
    auto model = recorded_model("plain");
    model.erase_metadata(key);
    expect_refusal(load(model.write()), ErrorCode::kCorrupt, std::string("metadata ") + key + " is missing");
  }
}

TEST(ModelLoad, impossible_options_and_precisions_are_refused) {
  auto model = recorded_model("plain");
  const auto& path = model.write();
  expect_refusal(load(path, "w=f32 a=f16"), ErrorCode::kUnsupported,
                 "activations run at f32, bf16 or int8, not f16");
  expect_refusal(load(path, "w=f32", {.max_batch_tokens = 0}), ErrorCode::kInvalidArgument,
                 "max_batch_tokens");
  expect_refusal(load(path, "w=f32", {.max_batch_tokens = 8, .max_context = 65}), ErrorCode::kInvalidArgument,
                 "1..64");
  expect_refusal(load(path, "w=f32", {.max_batch_tokens = 8, .max_context = -1}), ErrorCode::kInvalidArgument,
                 "1..64");
}

TEST(ModelLoad, context_beyond_available_memory_is_refused_with_the_sum) {
  auto model = recorded_model("wide_heads");
  constexpr uint64_t kBytesPerPosition = 12 * 2 * sizeof(float);  // 12 pairs
  const uint64_t context = available_memory_bytes() / kBytesPerPosition + 1;
  if (context > uint64_t{1} << 28) GTEST_SKIP() << "this machine has room for the longest context";
  model.set("llama.context_length", static_cast<int64_t>(context));
  expect_refusal(load(model.write()), ErrorCode::kResourceExhausted, "weights at this precision need");
}

TEST(ModelLoad, progress_ends_at_one_and_can_cancel) {
  auto model = recorded_model("plain");
  const auto& path = model.write();
  std::vector<double> shares;
  EXPECT_TRUE(load(path, "w=f32",
                   {.max_batch_tokens = 8,
                    .progress =
                        [&](double share) {
                          shares.push_back(share);
                          return true;
                        }})
                  .has_value());
  EXPECT_EQ(shares.back(), 1.0);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  expect_refusal(load(path, "w=f32", {.max_batch_tokens = 8, .progress = [](double) { return false; }}),
                 ErrorCode::kCancelled, "stopped");
}

TEST(ModelLoad, bytes_are_the_sum_of_the_effective_formats) {
  for (const char* name : {"plain", "tied", "odd_sizes", "all_biases"}) {
    auto synthetic = recorded_model(name);
    for (const char* precision : {"w=f32", "w=file", "w=bf16", "w=int8:64", "w=int4 !output@*=int8"}) {
      const auto model = must(load(synthetic.write(), precision));
      uint64_t sum = 0;
      for (const EffectiveFormat& format : model->effective_formats()) {
        EXPECT_FALSE(format.executed.as_shipped) << format.tensor;
        EXPECT_GT(format.bytes, 0U) << format.tensor;
        sum += format.bytes;
      }
      EXPECT_EQ(sum, model->weight_bytes());
      const uint64_t needed = LlamaWorkspace::bytes_needed(model->config(), 32, false) +
                              RopeTable::bytes_needed(model->config(), model->max_context());
      EXPECT_GE(model->workspace_bytes(), needed);
      EXPECT_LT(model->workspace_bytes(), needed + 16384);  // the lists of tasks
    }
  }
}

TEST(ModelLoad, tied_output_is_shared_when_formats_agree_and_copied_otherwise) {
  auto synthetic = recorded_model("tied");
  const auto& path = synthetic.write();
  const auto find = [](const Model& model, std::string_view tensor) -> const EffectiveFormat* {
    const auto formats = model.effective_formats();
    const auto at = std::ranges::find(formats, tensor, &EffectiveFormat::tensor);
    return at == formats.end() ? nullptr : &*at;
  };
  const auto shared = must(load(path, "w=int8"));
  EXPECT_EQ(find(*shared, "output.weight"), nullptr);
  const auto copied = must(load(path, "w=int8 !output@*=bf16"));
  ASSERT_NE(find(*copied, "output.weight"), nullptr);
  EXPECT_EQ(find(*copied, "output.weight")->executed.format, Format::kBF16);
  EXPECT_EQ(find(*copied, "token_embd.weight")->executed.format, Format::kInt8);
  EXPECT_EQ(copied->weight_bytes(), shared->weight_bytes() + find(*copied, "output.weight")->bytes);
}

// Coarser formats stay near the f32 logits, in the order of their resolution: nothing falls back in silence,
// nothing is wired to the wrong tensor.
TEST(ModelLoad, logits_leave_f32_as_the_format_gets_coarser) {
  auto synthetic = recorded_model("tied");
  const auto& path = synthetic.write();
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto logits_at = [&](std::string_view precision) {
    const auto model = must(load(path, precision));
    test::Runner runner(*model, 32);
    return runner.logits_of_last(runner.run(tokens), Phase::kPrefill);
  };
  const auto exact = logits_at("w=f32");
  const auto error_of = [&](std::string_view precision) {
    const auto logits = logits_at(precision);
    double sum = 0, norm = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      sum += std::pow(logits[i] - exact[i], 2);
      norm += std::pow(exact[i], 2);
    }
    return std::sqrt(sum / norm);
  };
  EXPECT_EQ(error_of("w=file"), 0);  // stored as F32
  const double bf16 = error_of("w=bf16"), int8 = error_of("w=int8"), int4 = error_of("w=int4");
  EXPECT_LT(error_of("w=f16"), bf16);
  EXPECT_GT(bf16, 1e-5);
  EXPECT_LT(bf16, 0.02);  // 2^-9 relative rounding of each weight
  EXPECT_LT(int8, 0.05);
  EXPECT_GT(int4, 2 * int8);
  EXPECT_LT(int4, 0.8);
  EXPECT_GT(error_of("w=f32 a=int8"), 1e-5);
  const double kv_int8 = error_of("w=f32 kv=int8"), kv_int4 = error_of("w=f32 kv=int4");
  EXPECT_GT(kv_int8, 1e-5);
  EXPECT_GT(kv_int4, 2 * kv_int8);
  EXPECT_LT(error_of("w=f32 kv=f16"), error_of("w=f32 kv=bf16"));
  EXPECT_LT(error_of("w=f32 kv=fp8_e4m3"), error_of("w=f32 kv=fp8_e5m2"));
  EXPECT_LT(error_of("w=f32 kv=bf16"), error_of("w=f32 kv=fp8_e4m3"));
  EXPECT_GT(error_of("w=f32 !down@1=int4"), 1e-5);
}

TEST(ModelLoad, shipped_blocks_become_groups_without_loss) {
  SKIP_WITHOUT(test::smollm_path());
  const Checkpoint checkpoint = must(Checkpoint::open(test::smollm_path()));
  for (const char* name : {"blk.0.ffn_down.weight", "blk.29.attn_k.weight", "token_embd.weight"}) {
    const Tensor& tensor = *checkpoint.find(name);
    const WeightFormat executed = must(executed_format(tensor, {.as_shipped = true}));
    EXPECT_TRUE(is_integer(executed.format));
    const PackedMatrix matrix = must(load_matrix(tensor, executed, true));
    std::vector<float> stored(static_cast<size_t>(tensor.n_values()));
    decode(tensor.type, tensor.data, stored);
    std::vector<float> row(static_cast<size_t>(matrix.n_inputs));
    for (const int64_t output : {int64_t{0}, int64_t{17}, matrix.n_outputs - 1}) {
      unpack_row(matrix, output, row);
      for (size_t i = 0; i < row.size(); ++i) {
        const float expected = stored[static_cast<size_t>(output) * row.size() + i];
        EXPECT_NEAR(row[i], expected,
                    1e-6F * std::abs(expected) + 1e-9F);  // one rounding of scale * code + minimum
      }
    }
  }
}

TEST(LayerObserver, sees_every_stage_in_slice_order) {
  auto synthetic = recorded_model("plain");
  const auto& path = synthetic.write();
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5};
  const auto observe = [&](std::string_view precision, int n_decode) {
    const auto model = must(load(path, precision));
    std::vector<std::pair<int, std::vector<float>>> seen;
    model->set_observer([&](int layer, std::span<const float> hidden) {
      seen.emplace_back(layer, std::vector<float>(hidden.begin(), hidden.end()));
    });
    test::Runner runner(*model, 32);
    const auto hidden = runner.run(tokens, n_decode);
    EXPECT_EQ(seen.back().second, hidden);
    return seen;
  };
  const auto seen = observe("w=f32", 0);
  ASSERT_EQ(seen.size(), 4U);  // embedding, two layers, norm
  EXPECT_EQ(seen.front().first, -1);
  EXPECT_EQ(seen.back().first, 2);
  const auto& embedding = synthetic.values("token_embd.weight");
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t k = 0; k < 32; ++k) {
      EXPECT_EQ(seen.front().second[i * 32 + k], embedding[static_cast<size_t>(tokens[i]) * 32 + k]);
    }
  }
  // With a format per phase rows are regrouped inside; outside they are not.
  const auto grouped = observe("w=f32 a=f32/bf16", 2);
  EXPECT_EQ(grouped.front().second, seen.front().second);
}

}  // namespace
}  // namespace assay
