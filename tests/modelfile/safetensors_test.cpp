// Whole checkpoints in safetensors: folder, shards, single file, and the real TinyStories model where it is
// present.
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "modelfile/checkpoint.h"
#include "modelfile/safetensors_reader.h"
#include "modelfile/scratch_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string name, dtype;
  std::vector<int64_t> shape;
  size_t bytes;
};

// Byte i of a tensor's data is its index in the entries.
std::string safetensors(const std::vector<Entry>& entries) {
  boost::json::object header;
  std::string data;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    header[entry.name] = {{"dtype", entry.dtype},
                          {"shape", boost::json::array(entry.shape.begin(), entry.shape.end())},
                          {"data_offsets", {data.size(), data.size() + entry.bytes}}};
    data.append(entry.bytes, static_cast<char>(i));
  }
  const std::string text = boost::json::serialize(header);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text + data;
}

std::string config(const std::string& more = "") {
  return R"({"model_type":"llama","hidden_size":8,"num_attention_heads":2,"num_key_value_heads":1,
      "num_hidden_layers":1,"intermediate_size":16,"vocab_size":4,"max_position_embeddings":32,"rms_norm_eps":1e-5)" +
         more + "}";
}

void put(const fs::path& path, const std::string& content) {
  ASSERT_TRUE(write_file_atomically(path, content));
}

const std::vector<Entry> kFirst = {{"model.embed_tokens.weight", "F32", {4, 8}, 128},
                                   {"model.layers.0.self_attn.q_proj.weight", "BF16", {8, 8}, 128},
                                   {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}, 8}};
const std::vector<Entry> kSecond = {{"model.norm.weight", "F16", {8}, 16},
                                    {"model.layers.0.post_attention_layernorm.weight", "F32", {8}, 32},
                                    {"lm_head.weight", "F8_E4M3", {4, 8}, 32}};

std::string names_of(const Checkpoint& checkpoint) {
  std::string names;
  for (const Tensor& tensor : checkpoint.tensors()) names += tensor.name + " ";
  return names;
}

TEST(Safetensors, folder_gives_canonical_names_and_keys) {
  const ScratchFolder folder;
  put(folder / "config.json", config(R"(,"rope_theta":500000.0,"torch_dtype":"bfloat16")"));
  std::vector<Entry> all = kFirst;
  all.insert(all.end(), kSecond.begin(), kSecond.end());
  put(folder / "model.safetensors", safetensors(all));
  for (const fs::path& path : {folder.path(), folder / "model.safetensors"}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_EQ(checkpoint->container(), "safetensors");
    EXPECT_EQ(checkpoint->architecture(), "llama");
    EXPECT_TRUE(checkpoint->rope_halves());
    EXPECT_EQ(
        names_of(*checkpoint),
        "token_embd.weight blk.0.attn_q.weight output_norm.weight blk.0.ffn_norm.weight output.weight ");
    EXPECT_EQ(*checkpoint->integer("llama.attention.head_count_kv"), 1);
    EXPECT_EQ(*checkpoint->integer("llama.attention.key_length"), 4);
    EXPECT_EQ(*checkpoint->number("llama.rope.freq_base"), 500000.0);
    EXPECT_EQ(*checkpoint->text("assay.torch_dtype"), "bfloat16");
    EXPECT_EQ(checkpoint->integer("llama.attention.sliding_window").error().code, ErrorCode::kNotFound);
    const Tensor* query = checkpoint->find("blk.0.attn_q.weight");
    ASSERT_NE(query, nullptr);
    EXPECT_EQ(query->type, BlockType::kBF16);
    EXPECT_EQ(query->shape, (std::vector<int64_t>{8, 8}));
    EXPECT_EQ(query->data[0], std::byte{1});
    EXPECT_EQ(checkpoint->find("output.weight")->type, BlockType::kFp8E4M3);
    EXPECT_EQ(checkpoint->find("lm_head.weight"), nullptr);
    EXPECT_EQ(checkpoint->vocab().error().code, ErrorCode::kNotFound);
  }
}

std::string index_of(const std::string& second_shard = "model-2.safetensors") {
  boost::json::object map;
  for (const Entry& entry : kFirst) map[entry.name] = "model-1.safetensors";
  for (const Entry& entry : kSecond) map[entry.name] = second_shard;
  return boost::json::serialize(
      boost::json::object{{"metadata", boost::json::object()}, {"weight_map", map}});
}

TEST(Safetensors, shards_are_joined) {
  const ScratchFolder folder;
  put(folder / "config.json", config());
  put(folder / "model-1.safetensors", safetensors(kFirst));
  put(folder / "model-2.safetensors", safetensors(kSecond));
  put(folder / "model.safetensors.index.json", index_of());
  for (const fs::path& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_EQ(checkpoint->container(), "safetensors, 2 shards");
    EXPECT_EQ(checkpoint->tensors().size(), 5U);
    EXPECT_EQ(checkpoint->file_bytes(),
              fs::file_size(folder / "model-1.safetensors") + fs::file_size(folder / "model-2.safetensors"));
  }
}

TEST(Safetensors, broken_folders_give_one_clear_error) {
  const ScratchFolder folder;
  const auto error = [&] {
    const auto checkpoint = Checkpoint::open(folder.path());
    std::string text = checkpoint ? "none" : checkpoint.error().message();
    for (size_t at; (at = text.find(folder.path().string())) != std::string::npos;) {
      text.replace(at, folder.path().string().size(), "D");
    }
    return text;
  };
  EXPECT_EQ(error(),
            "D: the folder has no config.json: expected config.json, tokenizer.json and *.safetensors, or a "
            ".gguf file");
  put(folder / "config.json", config());
  EXPECT_EQ(error(), "D: the folder has no .safetensors file");
  put(folder / "m.gguf", "GGUF");
  EXPECT_EQ(error(), "D: the folder has no .safetensors file; name its .gguf file instead");
  put(folder / "model-1.safetensors", safetensors(kFirst));
  put(folder / "model-2.safetensors", safetensors(kFirst));
  EXPECT_EQ(error(), "D: the folder has 2 .safetensors files and no model.safetensors.index.json");
  put(folder / "model.safetensors.index.json", index_of());
  EXPECT_EQ(error(),
            "D/model-2.safetensors: tensor 'model.embed_tokens.weight' is here, the index says "
            "'model-1.safetensors'");
  put(folder / "model-2.safetensors", safetensors({kSecond[0]}));
  EXPECT_EQ(error(), "D/model-2.safetensors: tensor 'lm_head.weight' is in the index and not in the file");
  put(folder / "model.safetensors.index.json", index_of("../model-2.safetensors"));
  EXPECT_EQ(error(),
            "D/model.safetensors.index.json: weight_map 'model.norm.weight': expected a .safetensors file "
            "name, found "
            "'../model-2.safetensors'");
  put(folder / "model.safetensors.index.json", index_of("gone.safetensors"));
  EXPECT_EQ(error(), "D/gone.safetensors: cannot open: No such file or directory");
  put(folder / "model.safetensors.index.json", "{}");
  EXPECT_EQ(error(), "D/model.safetensors.index.json: weight_map is missing");
  put(folder / "model.safetensors.index.json", index_of());
  put(folder / "config.json", "{");
  EXPECT_EQ(error(), "D/config.json: is not valid JSON at byte 1: incomplete JSON");
}

TEST(Safetensors, same_tensor_in_two_shards_is_refused) {
  const ScratchFolder folder;
  put(folder / "config.json", config());
  put(folder / "model-1.safetensors", safetensors({{"x.y", "F32", {1}, 4}, kFirst[0]}));
  put(folder / "model-2.safetensors", safetensors({{"x.y", "F32", {1}, 4}, kSecond[0]}));
  put(folder / "model.safetensors.index.json",
      R"({"weight_map":{"model.embed_tokens.weight":"model-1.safetensors","model.norm.weight":"model-2.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().what, "tensor 'x.y' occurs twice");
}

// Files hold the tied matrix under one name, the other, or both.
TEST(Safetensors, tied_embeddings_have_one_name) {
  const Entry embedding{"model.embed_tokens.weight", "F32", {4, 8}, 128};
  const Entry head{"lm_head.weight", "F32", {4, 8}, 128};
  const std::vector<std::vector<Entry>> variants = {{embedding}, {head}, {embedding, head}};
  for (const auto& entries : variants) {
    const ScratchFolder folder;
    put(folder / "config.json", config(R"(,"tie_word_embeddings":true)"));
    put(folder / "model.safetensors", safetensors(entries));
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_EQ(names_of(*checkpoint), "token_embd.weight ");
    EXPECT_TRUE(*checkpoint->boolean("assay.tied_embeddings"));
    EXPECT_TRUE(checkpoint->warnings().empty());
  }
  const ScratchFolder folder;
  put(folder / "config.json", config(R"(,"tie_word_embeddings":false)"));
  put(folder / "model.safetensors", safetensors({embedding}));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ(checkpoint->warnings().size(), 1U);
  EXPECT_EQ(checkpoint->warnings()[0],
            "lm_head.weight is missing though the embeddings are not tied; they are taken as tied");
}

TEST(Safetensors, what_cannot_be_held_is_left_out_with_a_warning) {
  const std::string file = safetensors({{"mask", "BOOL", {2, 2}, 4},
                                        {"five", "F32", {1, 1, 1, 1, 1}, 4},
                                        {"none", "F32", {0, 3}, 0},
                                        {"scalar", "F32", {}, 4}});
  const auto contents = parse_safetensors(std::as_bytes(std::span(file)), "file");
  ASSERT_TRUE(contents) << contents.error().message();
  ASSERT_EQ(contents->tensors.size(), 1U);
  EXPECT_EQ(contents->tensors[0].name, "scalar");
  EXPECT_EQ(contents->tensors[0].shape, (std::vector<int64_t>{1}));
  EXPECT_EQ(contents->warnings,
            (std::vector<std::string>{"tensor 'mask' was left out: assay does not hold BOOL",
                                      "tensor 'five' was left out: it has 5 dimensions, more than 4",
                                      "tensor 'none' was left out: it has no values"}));
}

fs::path shared_data() {
  if (const char* set = std::getenv("ASSAY_SHARED_DATA"); set != nullptr && *set != '\0') return set;
  return ASSAY_SOURCE_DIR "/../shared/data";
}

// Expected values: safetensors 0.8.0 in Python,
//   t = safe_open("model.safetensors",
//   "numpy").get_tensor("model.layers.1.self_attn.k_proj.weight").reshape(-1) math.fsum(float(x) * (i % 97 +
//   1) for i, x in enumerate(t))
TEST(Safetensors, tinystories_agrees_with_the_reference_reader) {
  const fs::path path = shared_data() / "models" / "tinystories-656k";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors().size(), 20U);
  EXPECT_TRUE(checkpoint->warnings().empty());
  const Tensor* key = checkpoint->find("blk.1.attn_k.weight");
  ASSERT_NE(key, nullptr);
  ASSERT_EQ(key->shape, (std::vector<int64_t>{64, 128}));
  std::vector<float> values(static_cast<size_t>(key->n_values()));
  decode(key->type, key->data, values);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(i % 97 + 1);
  // 8192 additions of terms below 100 in double.
  EXPECT_NEAR(sum, -235.7532515525818, 1e-9);
  EXPECT_EQ(checkpoint->find("output.weight"), nullptr);  // tied
  const auto vocab = checkpoint->vocab();
  ASSERT_TRUE(vocab) << vocab.error().message();
  EXPECT_EQ(vocab->tokens.size(), 2048U);
  EXPECT_EQ(vocab->bos, 1);
  EXPECT_EQ(vocab->eos, 2);
  EXPECT_TRUE(vocab->add_bos);
  EXPECT_TRUE(vocab->byte_fallback);
  EXPECT_TRUE(vocab->add_space_prefix);
  EXPECT_EQ(vocab->end_of_generation, (std::vector<int32_t>{2}));
}

}  // namespace
}  // namespace assay
