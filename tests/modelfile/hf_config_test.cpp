// config.json of published models (the fields that matter), and the keys they become. The expected keys and
// values are those that llama.cpp's convert_hf_to_gguf.py writes for the same fields, beside the ones that
// hf_config.h adds.
#include "modelfile/hf_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "modelfile/json_document.h"

namespace assay::modelfile_internal {
namespace {

struct Translated {
  Metadata metadata;
  std::vector<std::string> warnings;
  bool tied = false;
};

Translated translate(std::string_view text) {
  const auto document = parse_json(text, "config.json");
  EXPECT_TRUE(document) << document.error().message();
  auto config = translate_config(*as_object(*document, "config.json"), "model");
  EXPECT_TRUE(config) << config.error().message();
  if (!config) return {};
  return {Metadata(std::move(config->metadata), "config.json"), std::move(config->warnings),
          config->tied_embeddings};
}

void expect_integers(const Metadata& metadata,
                     std::initializer_list<std::pair<const char*, int64_t>> expected) {
  for (const auto& [key, value] : expected) EXPECT_EQ(metadata.integer(key).value_or(-1), value) << key;
}

void expect_numbers(const Metadata& metadata,
                    std::initializer_list<std::pair<const char*, double>> expected) {
  for (const auto& [key, value] : expected) EXPECT_DOUBLE_EQ(metadata.number(key).value_or(-1), value) << key;
}

// meta-llama/Llama-3.1-8B-Instruct
TEST(HfConfig, llama_3_1) {
  const auto [metadata, warnings, tied] =
      translate(R"({"architectures":["LlamaForCausalLM"],"attention_bias":false,
    "bos_token_id":128000,"eos_token_id":[128001,128008,128009],"hidden_act":"silu","hidden_size":4096,
    "intermediate_size":14336,"max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama",
    "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"rms_norm_eps":1e-05,
    "rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
      "original_max_position_embeddings":8192,"rope_type":"llama3"},
    "rope_theta":500000.0,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":128256})");
  EXPECT_EQ(*metadata.text("general.architecture"), "llama");
  EXPECT_EQ(*metadata.text("general.name"), "model");
  expect_integers(metadata, {{"llama.context_length", 131072},
                             {"llama.embedding_length", 4096},
                             {"llama.block_count", 32},
                             {"llama.feed_forward_length", 14336},
                             {"llama.vocab_size", 128256},
                             {"llama.attention.head_count", 32},
                             {"llama.attention.head_count_kv", 8},
                             {"llama.attention.key_length", 128},
                             {"llama.attention.value_length", 128},
                             {"llama.rope.dimension_count", 128},
                             {"llama.rope.scaling.original_context_length", 8192}});
  expect_numbers(metadata, {{"llama.attention.layer_norm_rms_epsilon", 1e-5},
                            {"llama.rope.freq_base", 500000},
                            {"llama.rope.scaling.factor", 8},
                            {"llama.rope.scaling.low_freq_factor", 1},
                            {"llama.rope.scaling.high_freq_factor", 4}});
  EXPECT_EQ(*metadata.text("llama.rope.scaling.type"), "llama3");
  EXPECT_EQ(*metadata.text("assay.torch_dtype"), "bfloat16");
  EXPECT_FALSE(*metadata.boolean("assay.tied_embeddings"));
  EXPECT_FALSE(tied);
  EXPECT_TRUE(warnings.empty());
}

// mistralai/Mistral-7B-v0.1: the window is kept under llama's name
TEST(HfConfig, mistral) {
  const auto [metadata, warnings, tied] =
      translate(R"({"hidden_act":"silu","hidden_size":4096,"intermediate_size":14336,
    "max_position_embeddings":32768,"model_type":"mistral","num_attention_heads":32,"num_hidden_layers":32,
    "num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":10000.0,"sliding_window":4096,
    "tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":32000})");
  EXPECT_EQ(*metadata.text("general.architecture"), "llama");
  EXPECT_EQ(*metadata.integer("llama.attention.sliding_window"), 4096);
  EXPECT_EQ(metadata.find("llama.rope.scaling.type"), nullptr);
  EXPECT_TRUE(warnings.empty());
}

// Qwen/Qwen2.5-0.5B-Instruct, with the YaRN block of its model card
TEST(HfConfig, qwen2_with_yarn) {
  const auto [metadata, warnings, tied] =
      translate(R"({"hidden_act":"silu","hidden_size":896,"intermediate_size":4864,
    "max_position_embeddings":32768,"max_window_layers":21,"model_type":"qwen2","num_attention_heads":14,
    "num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,"rope_theta":1000000.0,
    "rope_scaling":{"factor":4.0,"original_max_position_embeddings":32768,"type":"yarn"},"sliding_window":32768,
    "tie_word_embeddings":true,"torch_dtype":"bfloat16","use_sliding_window":false,"vocab_size":151936})");
  EXPECT_EQ(*metadata.text("general.architecture"), "qwen2");
  expect_integers(metadata, {{"qwen2.attention.head_count", 14},
                             {"qwen2.attention.head_count_kv", 2},
                             {"qwen2.attention.key_length", 64},
                             {"qwen2.rope.scaling.original_context_length", 32768}});
  EXPECT_EQ(*metadata.text("qwen2.rope.scaling.type"), "yarn");
  EXPECT_EQ(*metadata.number("qwen2.rope.scaling.factor"), 4);
  EXPECT_EQ(metadata.find("qwen2.attention.sliding_window"), nullptr);  // switched off
  EXPECT_TRUE(tied);
}

// google/gemma-2-2b
TEST(HfConfig, gemma2) {
  const auto [metadata, warnings, tied] =
      translate(R"({"attn_logit_softcapping":50.0,"final_logit_softcapping":30.0,
    "head_dim":256,"hidden_act":"gelu_pytorch_tanh","hidden_activation":"gelu_pytorch_tanh","hidden_size":2304,
    "intermediate_size":9216,"max_position_embeddings":8192,"model_type":"gemma2","num_attention_heads":8,
    "num_hidden_layers":26,"num_key_value_heads":4,"query_pre_attn_scalar":256,"rms_norm_eps":1e-06,
    "rope_theta":10000.0,"sliding_window":4096,"vocab_size":256000})");
  expect_integers(metadata, {{"gemma2.attention.key_length", 256},
                             {"gemma2.rope.dimension_count", 256},
                             {"gemma2.attention.sliding_window", 4096}});
  expect_numbers(metadata, {{"gemma2.attn_logit_softcapping", 50},
                            {"gemma2.final_logit_softcapping", 30},
                            {"gemma2.attention.scale", 1.0 / 16}});
  EXPECT_TRUE(tied);  // gemma's default
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"gemma norm weights are stored less one, as Hugging Face has them"}));
}

// transformers 5 writes rope_parameters and dtype; linear and dynamic scalings, a partial rotation, longrope
TEST(HfConfig, every_form_of_rope) {
  const std::string base =
      R"("model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":1,
    "intermediate_size":16,"vocab_size":4,"max_position_embeddings":32,"rms_norm_eps":1e-5)";
  const Metadata newer =
      translate("{" + base + R"(,"dtype":"float16","rope_parameters":{"rope_type":"linear","factor":2.0,
      "rope_theta":1234.0}})")
          .metadata;
  EXPECT_EQ(*newer.number("llama.rope.freq_base"), 1234);
  EXPECT_EQ(*newer.text("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(*newer.text("assay.torch_dtype"), "float16");
  const Metadata plain =
      translate("{" + base + R"(,"rope_parameters":{"rope_type":"default","rope_theta":5.0}})").metadata;
  EXPECT_EQ(plain.find("llama.rope.scaling.type"), nullptr);
  EXPECT_EQ(*plain.number("llama.rope.freq_base"), 5);
  const Metadata dynamic =
      translate("{" + base + R"(,"rope_scaling":{"type":"dynamic","factor":2}})").metadata;
  EXPECT_EQ(*dynamic.text("llama.rope.scaling.type"), "dynamic");
  EXPECT_EQ(*dynamic.number("llama.rope.scaling.factor"), 2);
  EXPECT_EQ(*dynamic.number("llama.rope.freq_base"), 10000);  // the default
  const Metadata partial = translate("{" + base + R"(,"partial_rotary_factor":0.25})").metadata;
  EXPECT_EQ(*partial.integer("llama.rope.dimension_count"), 8);
  const Metadata longrope = translate("{" + base + R"(,"original_max_position_embeddings":16,
      "rope_scaling":{"type":"su","short_factor":[1.0,1.5],"long_factor":[2,3]}})")
                                .metadata;
  EXPECT_EQ(*longrope.text("llama.rope.scaling.type"), "longrope");
  EXPECT_EQ(*longrope.numbers("llama.rope.scaling.short_factor"), (std::vector<double>{1, 1.5}));
  EXPECT_EQ(*longrope.numbers("llama.rope.scaling.long_factor"), (std::vector<double>{2, 3}));
  EXPECT_EQ(*longrope.integer("llama.rope.scaling.original_context_length"), 16);
}

TEST(HfConfig, unknown_model_types_pass_with_a_warning) {
  const auto [metadata, warnings, tied] =
      translate(R"({"model_type":"olmo9","hidden_size":64,"num_attention_heads":2,
    "num_hidden_layers":1,"intermediate_size":16,"vocab_size":4,"max_position_embeddings":32,"rms_norm_eps":1e-5,
    "hidden_act":"relu"})");
  EXPECT_EQ(*metadata.integer("olmo9.block_count"), 1);
  EXPECT_EQ(warnings, (std::vector<std::string>{"model_type 'olmo9' is not known to assay"}));
}

}  // namespace
}  // namespace assay::modelfile_internal
