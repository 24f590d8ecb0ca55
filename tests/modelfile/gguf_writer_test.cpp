#include "modelfile/gguf_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/random.h"
#include "modelfile/gguf_reader.h"
#include "modelfile/gguf_types.h"
#include "modelfile/scratch_folder.h"

namespace assay {
namespace {

MetadataValue array(auto values) {
  return std::make_shared<const MetadataArray>(MetadataArray{std::move(values)});
}

std::vector<std::byte> random_bytes(Random& random, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

std::string random_text(Random& random, size_t limit) {
  std::string text(random.below(limit), '\0');
  for (char& c : text) c = static_cast<char>(random.below(256));
  return text;
}

double random_float(Random& random) {
  // Exact in f32, so that nothing is lost on the way.
  return static_cast<double>(
      static_cast<float>((random.uniform() - 0.5) * std::pow(10.0, random.uniform() * 60 - 30)));
}

MetadataValue random_value(Random& random) {
  const auto many = [&](auto make) {
    std::vector<decltype(make())> values;
    for (uint64_t i = random.below(5); i > 0; --i) values.push_back(make());
    return array(std::move(values));
  };
  const auto natural = [&] { return random.next() >> random.below(64); };
  const auto integer = [&] { return static_cast<int64_t>(random.next()) >> random.below(64); };
  switch (random.below(10)) {
    case 0:
      return random.below(2) == 1;
    case 1:
      return integer();
    case 2:
      return natural();
    case 3:
      return random_float(random);
    case 4:
      return random_text(random, 40);
    case 5:
      return many([&] { return random.below(2) == 1; });
    case 6:
      return many(integer);
    case 7:
      return many(natural);
    case 8:
      return many([&] { return random_float(random); });
    default:
      return many([&] { return random_text(random, 20); });
  }
}

// A document with its data.
struct Sample {
  GgufDocument document;
  std::vector<std::vector<std::byte>> data;
};

Sample random_sample(Random& random) {
  Sample sample;
  for (uint64_t i = random.below(12); i > 0; --i) {
    sample.document.metadata.emplace_back(fmt::format("key.{}.{}", i, random.below(1000)),
                                          random_value(random));
  }
  if (random.below(2) == 0) {
    sample.document.metadata.emplace_back("general.alignment", uint64_t{1} << random.below(10));
  }
  for (uint64_t i = random.below(6); i > 0; --i) {
    Tensor tensor{.name = fmt::format("blk.{}.weight", i)};
    do {
      tensor.type = static_cast<BlockType>(random.below(static_cast<uint64_t>(BlockType::kCount)));
    } while (!gguf_code(tensor.type));
    for (uint64_t d = random.below(4); d > 0; --d)
      tensor.shape.push_back(static_cast<int64_t>(1 + random.below(3)));
    tensor.shape.push_back(layout(tensor.type).values * static_cast<int64_t>(1 + random.below(3)));
    const auto bytes = stored_bytes(tensor.type, static_cast<uint64_t>(tensor.n_values()));
    sample.data.push_back(random_bytes(random, *bytes));
    sample.document.tensors.push_back(tensor);
  }
  for (size_t i = 0; i < sample.data.size(); ++i) sample.document.tensors[i].data = sample.data[i];
  return sample;
}

void expect_equal(const MetadataValue& read, const MetadataValue& written, const std::string& key) {
  ASSERT_EQ(read.index(), written.index()) << key;
  if (const auto* expected = std::get_if<std::shared_ptr<const MetadataArray>>(&written)) {
    EXPECT_EQ((*std::get_if<std::shared_ptr<const MetadataArray>>(&read))->values, (*expected)->values)
        << key;
  } else {
    EXPECT_EQ(read, written) << key;
  }
}

TEST(GgufWriter, reader_gives_back_what_was_written) {
  const ScratchFolder folder;
  Random random(20261201, "gguf_writer");
  for (int round = 0; round < 60; ++round) {
    const Sample sample = random_sample(random);
    ASSERT_TRUE(write_gguf(folder / "m.gguf", sample.document));
    const auto file = MappedFile::open(folder / "m.gguf");
    ASSERT_TRUE(file);
    const auto read = parse_gguf(file->bytes(), "m.gguf");
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_EQ(read->metadata.size(), sample.document.metadata.size());
    for (size_t i = 0; i < read->metadata.size(); ++i) {
      EXPECT_EQ(read->metadata[i].first, sample.document.metadata[i].first);
      expect_equal(read->metadata[i].second, sample.document.metadata[i].second, read->metadata[i].first);
    }
    ASSERT_EQ(read->tensors.size(), sample.document.tensors.size());
    for (size_t i = 0; i < read->tensors.size(); ++i) {
      EXPECT_EQ(read->tensors[i].name, sample.document.tensors[i].name);
      EXPECT_EQ(read->tensors[i].type, sample.document.tensors[i].type);
      EXPECT_EQ(read->tensors[i].shape, sample.document.tensors[i].shape);
      EXPECT_TRUE(std::ranges::equal(read->tensors[i].data, sample.data[i]));
    }
  }
}

TEST(GgufWriter, pieces_of_any_size_give_the_same_file) {
  const ScratchFolder folder;
  Random random(7, "pieces");
  for (int round = 0; round < 20; ++round) {
    const Sample sample = random_sample(random);
    ASSERT_TRUE(write_gguf(folder / "whole", sample.document));
    std::vector<std::byte> all;
    for (const auto& data : sample.data) all.insert(all.end(), data.begin(), data.end());
    auto writer = GgufWriter::create(folder / "pieces", sample.document);
    ASSERT_TRUE(writer) << writer.error().message();
    for (size_t at = 0; at < all.size();) {
      const size_t piece = std::min<size_t>(all.size() - at, 1 + random.below(100));
      ASSERT_TRUE(writer->append(std::span(all).subspan(at, piece)));
      at += piece;
    }
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ(*read_file(folder / "pieces"), *read_file(folder / "whole"));
  }
}

GgufDocument one_tensor() {
  return {{}, {{.name = "a", .type = BlockType::kF32, .shape = {2, 3}}}};
}

TEST(GgufWriter, unfinished_file_never_appears) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "m.gguf", "old"));
  {
    auto writer = GgufWriter::create(folder / "m.gguf", one_tensor());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append(std::vector<std::byte>(23)));
    const auto finished = writer->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().what, "expected data of 1 tensors, found 0 and 23 bytes");
  }
  EXPECT_EQ(*read_file(folder / "m.gguf"), "old");
  EXPECT_EQ(folder.n_files(), 1U);
}

TEST(GgufWriter, data_beyond_the_tensors_is_refused) {
  const ScratchFolder folder;
  auto writer = GgufWriter::create(folder / "m.gguf", one_tensor());
  ASSERT_TRUE(writer);
  const auto appended = writer->append(std::vector<std::byte>(25));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(appended.error().what, "1 bytes more than the tensors hold");
}

TEST(GgufWriter, documents_that_readers_refuse_are_refused) {
  const auto error_of = [](const GgufDocument& document) {
    const auto header = encode_gguf_header(document);
    return header ? std::string("none") : header.error().what;
  };
  const auto tensor = [](std::string name, BlockType type, std::vector<int64_t> shape) {
    return GgufDocument{{}, {{.name = std::move(name), .type = type, .shape = std::move(shape)}}};
  };
  EXPECT_EQ(error_of({{{"k", true}, {"k", true}}, {}}), "metadata key 'k' occurs twice");
  EXPECT_EQ(error_of({{{"", true}}, {}}), "expected metadata keys of 1 to 65535 bytes, found one of 0");
  EXPECT_EQ(error_of({{{"general.alignment", uint64_t{24}}}, {}}),
            "expected general.alignment to be an unsigned power of two up to 2^20");
  EXPECT_EQ(error_of(tensor("", BlockType::kF32, {1})), "expected tensor names of 1 to 64 bytes, found ''");
  EXPECT_EQ(error_of(tensor("a", BlockType::kF32, {})), "tensor 'a': expected 1 to 4 dimensions, found 0");
  EXPECT_EQ(error_of(tensor("a", BlockType::kF32, {1, 1, 1, 1, 1})),
            "tensor 'a': expected 1 to 4 dimensions, found 5");
  EXPECT_EQ(error_of(tensor("a", BlockType::kF32, {0})), "tensor 'a': dimension 0 is not positive");
  EXPECT_EQ(error_of(tensor("a", BlockType::kQ4_0, {2, 48})),
            "tensor 'a': rows of 48 values are not whole Q4_0 blocks of 32");
  EXPECT_EQ(error_of(tensor("a", BlockType::kFp8E4M3, {1})), "tensor 'a': GGUF has no number for F8_E4M3");
  GgufDocument twice = tensor("a", BlockType::kF32, {1});
  twice.tensors.push_back(twice.tensors.front());
  EXPECT_EQ(error_of(twice), "tensor 'a' occurs twice");
}

TEST(GgufWriter, numbers_outside_f32_stay_f64) {
  const GgufDocument document{{{"big", 1e300}, {"small", 1e-300}, {"third", 1.0 / 3}, {"zero", 0.0}}, {}};
  const auto header = encode_gguf_header(document);
  ASSERT_TRUE(header);
  const auto read = parse_gguf(std::as_bytes(std::span(*header)), "document");
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<double>(read->metadata[0].second), 1e300);
  EXPECT_EQ(std::get<double>(read->metadata[1].second), 1e-300);
  EXPECT_EQ(std::get<double>(read->metadata[2].second), static_cast<double>(static_cast<float>(1.0 / 3)));
  EXPECT_EQ(std::get<double>(read->metadata[3].second), 0.0);
}

// The reference implementation reads what was written, where it is installed (pip install gguf; ASSAY_PYTHON
// names another interpreter).
TEST(GgufWriter, gguf_py_reads_the_same) {
  const char* chosen = std::getenv("ASSAY_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  if (std::system((python + " -c 'import gguf' >/dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << python << " has no module gguf";
  }
  const ScratchFolder folder;
  const std::vector<float> values = {1.5F, -2.0F, 0.25F, 3.0F, 4.0F, 5.0F};
  GgufDocument document{{{"general.architecture", "llama"},
                         {"llama.block_count", uint64_t{7}},
                         {"llama.rope.freq_base", 1e6},
                         {"x.negative", int64_t{-3}},
                         {"x.flag", true},
                         {"x.texts", array(std::vector<std::string>{"a", "\xC3\xA9", ""})},
                         {"x.integers", array(std::vector<int64_t>{-1, 2})}},
                        {{.name = "a.weight", .type = BlockType::kF32, .shape = {2, 3}}}};
  document.tensors[0].data = std::as_bytes(std::span(values));
  ASSERT_TRUE(write_gguf(folder / "m.gguf", document));
  const std::string command = python + " " ASSAY_SOURCE_DIR "/tests/modelfile/data/dump_with_gguf_py.py " +
                              (folder / "m.gguf").string() + " > " + (folder / "dump.txt").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(*read_file(folder / "dump.txt"),
            "general.architecture STRING 'llama'\n"
            "llama.block_count UINT32 7\n"
            "llama.rope.freq_base FLOAT32 1000000.0\n"
            "x.negative INT32 -3\n"
            "x.flag BOOL True\n"
            "x.texts ARRAY STRING ['a', 'é', '']\n"
            "x.integers ARRAY INT32 [-1, 2]\n"
            "a.weight F32 [3, 2] [1.5, -2.0, 0.25, 3.0, 4.0, 5.0]\n");
}

}  // namespace
}  // namespace assay
