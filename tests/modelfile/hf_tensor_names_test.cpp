// Names by the table of gguf-py: data/name_tensors_with_gguf_py.py printed data/tensor_names.txt.
#include "modelfile/hf_tensor_names.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"

namespace assay::modelfile_internal {
namespace {

TEST(HfTensorNames, agree_with_gguf_py) {
  const auto text = read_file(ASSAY_SOURCE_DIR "/tests/modelfile/data/tensor_names.txt");
  ASSERT_TRUE(text);
  std::istringstream lines(*text);
  std::string architecture, name, expected;
  int n_names = 0;
  while (lines >> architecture >> name >> expected) {
    EXPECT_EQ(gguf_tensor_name(name, architecture).value_or("none"), expected) << architecture << " " << name;
    // Base models leave the prefix out.
    if (name.starts_with("model.")) {
      EXPECT_EQ(gguf_tensor_name(name.substr(6), architecture), expected);
    }
    ++n_names;
  }
  EXPECT_EQ(n_names, 167);
}

TEST(HfTensorNames, everything_else_has_none) {
  for (const char* name :
       {"", "weight", "model.", "model.layers.0.input_layernorm", "model.layers..input_layernorm.weight",
        "model.layers.x.input_layernorm.weight", "model.layers.01.input_layernorm.weight",
        "model.layers.-1.input_layernorm.weight", "model.layers.12345678.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight_scale", "model.layers.0.mlp.experts.0.w1.weight",
        "model.vision.patch_embed.weight", "lm_head.scale"}) {
    EXPECT_FALSE(gguf_tensor_name(name, "llama")) << name;
  }
  EXPECT_TRUE(is_derived_buffer("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_derived_buffer("model.layers.0.self_attn.q_proj.weight"));
}

}  // namespace
}  // namespace assay::modelfile_internal
