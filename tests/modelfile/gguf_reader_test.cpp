// A small file of the reference writer (data/write_with_gguf_py.py made it; the values stand there).
#include "modelfile/gguf_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "modelfile/checkpoint.h"

namespace assay {
namespace {

Result<Checkpoint> open_sample() {
  return Checkpoint::open(ASSAY_SOURCE_DIR "/tests/modelfile/data/gguf_py.gguf");
}

TEST(GgufReader, metadata_of_every_type) {
  const auto file = open_sample();
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->container(), "GGUF v3");
  EXPECT_EQ(file->architecture(), "llama");
  EXPECT_FALSE(file->rope_halves());
  EXPECT_EQ(*file->integer("x.u8"), 255);
  EXPECT_EQ(*file->integer("x.i8"), -128);
  EXPECT_EQ(*file->integer("x.u16"), 65535);
  EXPECT_EQ(*file->integer("x.i16"), -32768);
  EXPECT_EQ(*file->integer("x.i32"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(*file->integer("x.i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(std::get<uint64_t>(*file->find_metadata("x.u64")), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*file->number("x.f64"), 0.1);
  EXPECT_EQ(*file->number("llama.attention.layer_norm_rms_epsilon"), static_cast<double>(1e-5F));
  EXPECT_EQ(*file->number("llama.block_count"), 2.0);
  EXPECT_TRUE(*file->boolean("x.bool"));
  EXPECT_EQ(*file->text("general.name"), "tiny");
  EXPECT_EQ(*file->numbers("x.integers"), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(*file->numbers("x.numbers"), (std::vector<double>{0.5, -0.25}));
  EXPECT_EQ(*file->numbers("llama.block_count"), (std::vector<double>{2}));
  const auto& texts = std::get<std::shared_ptr<const MetadataArray>>(*file->find_metadata("x.texts"))->values;
  EXPECT_EQ(std::get<std::vector<std::string>>(texts), (std::vector<std::string>{"one", "zwei", "三"}));
  const auto& flags = std::get<std::shared_ptr<const MetadataArray>>(*file->find_metadata("x.flags"))->values;
  EXPECT_EQ(std::get<std::vector<bool>>(flags), (std::vector<bool>{true, false}));
}

TEST(GgufReader, look_ups_say_what_is_wrong) {
  const auto file = open_sample();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->integer("x.u64").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(file->integer("x.u64").error().what, "metadata 'x.u64': 18446744073709551615 exceeds 2^63 - 1");
  EXPECT_EQ(file->integer("x.absent").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file->integer("general.name").error().what,
            "metadata 'general.name': expected an integer, found a text");
  EXPECT_EQ(file->integer("x.f64").error().what, "metadata 'x.f64': expected an integer, found a number");
  EXPECT_EQ(file->text("x.texts").error().what, "metadata 'x.texts': expected a text, found an array");
  EXPECT_EQ(file->boolean("x.u8").error().what, "metadata 'x.u8': expected a boolean, found an integer");
  EXPECT_EQ(file->numbers("x.texts").error().what, "metadata 'x.texts': expected an array of numbers");
}

TEST(GgufReader, tensors_are_outermost_first_and_aligned) {
  const auto file = open_sample();
  ASSERT_TRUE(file);
  ASSERT_EQ(file->tensors().size(), 4U);
  const Tensor* rows = file->find("f32.weight");
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->shape, (std::vector<int64_t>{2, 32}));
  const Tensor* cube = file->find("cube.weight");
  ASSERT_NE(cube, nullptr);
  EXPECT_EQ(cube->type, BlockType::kI32);
  EXPECT_EQ(cube->shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(file->find("f32"), nullptr);
  EXPECT_EQ(file->find("zz"), nullptr);
  for (const Tensor& tensor : file->tensors()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) % 32, 0U) << tensor.name;
  }
}

TEST(GgufReader, tensors_decode_to_what_was_written) {
  const auto file = open_sample();
  ASSERT_TRUE(file);
  for (const auto& [name, tolerance] :
       {std::pair{"f32.weight", 0.0F}, {"f16.weight", 0.0F}, {"q8.weight", 0.25F}}) {
    const Tensor* tensor = file->find(name);
    ASSERT_NE(tensor, nullptr);
    std::vector<float> values(static_cast<size_t>(tensor->n_values()));
    decode(tensor->type, tensor->data, values);
    // q8_0: half a step of the larger row, 63/127/2, rounded up.
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::abs(values[i] - static_cast<float>(i)), tolerance) << name;
  }
}

// Cutting the file anywhere is an error that says so, and never a crash.
TEST(GgufReader, every_truncation_is_refused) {
  const auto whole = read_file(ASSAY_SOURCE_DIR "/tests/modelfile/data/gguf_py.gguf");
  ASSERT_TRUE(whole);
  const auto contents = parse_gguf(std::as_bytes(std::span(*whole)), "whole");
  ASSERT_TRUE(contents);
  // The writer pads after the last tensor; the padding is not needed.
  const Tensor& last = contents->tensors.back();
  const auto end =
      static_cast<size_t>(last.data.data() + last.data.size() - std::as_bytes(std::span(*whole)).data());
  for (size_t size = 0; size < end; ++size) {
    // A copy, so that the sanitizer sees reads past the end.
    const std::vector<char> cut(whole->begin(), whole->begin() + static_cast<std::ptrdiff_t>(size));
    const auto read = parse_gguf(std::as_bytes(std::span(cut)), "cut");
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << size;
  }
  EXPECT_TRUE(parse_gguf(std::as_bytes(std::span(*whole)).first(end), "cut"));
}

TEST(Checkpoint, missing_paths_and_folders_without_config) {
  const auto missing = Checkpoint::open("/nowhere/model.gguf");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message(), "/nowhere/model.gguf: cannot open: No such file or directory");
}

}  // namespace
}  // namespace assay
