#include "tune/calibrated_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/file.h"
#include "base/random.h"
#include "kernels/sparse_matrix.h"

namespace assay {
namespace {

class CalibratedStoreTest : public ::testing::Test {
 protected:
  CalibratedStoreTest()
      : folder_(std::filesystem::temp_directory_path() / ("assay_calibrated_" + std::to_string(::getpid()))) {}
  ~CalibratedStoreTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path folder_;
};

CalibratedWeights some_weights() {
  Random random(1, "store");
  std::vector<float> values(48 * 96);
  for (float& value : values) value = static_cast<float>(random.normal());
  CalibratedWeights weights;
  weights.matrices.emplace(
      "dense",
      pack_integers(quantise_groups(values, 48, 96, Format::kInt4, 32, GroupScheme::kAsymmetric).value()).value());
  const BlockMask mask = prune_blockwise(values, 48, 96, {}).value();
  weights.matrices.emplace("sparse", pack_sparse(quantise_sparse(values, mask, 64, true, {}).value()).value());
  weights.vectors["norm"] = {1, 2.5F, -3};
  return weights;
}

TEST_F(CalibratedStoreTest, what_is_kept_is_found_bit_for_bit) {
  const CalibratedStore store = CalibratedStore::open(folder_).value();
  EXPECT_FALSE(store.find("key").has_value());
  const CalibratedWeights kept = some_weights();
  ASSERT_TRUE(store.keep("key", kept).has_value());
  EXPECT_FALSE(store.find("another key").has_value());
  const auto found = store.find("key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->vectors, kept.vectors);
  EXPECT_EQ(found->bytes(), kept.bytes());
  for (const auto& [name, matrix] : kept.matrices) {
    const PackedMatrix& other = found->matrices.at(name);
    std::vector<float> a(static_cast<size_t>(matrix.n_inputs)), b(a.size());
    for (int64_t row = 0; row < matrix.n_outputs; ++row) {
      unpack_row(matrix, row, a);
      unpack_row(other, row, b);
      ASSERT_EQ(a, b);
    }
  }
}

TEST_F(CalibratedStoreTest, damaged_files_count_as_absent) {
  const CalibratedStore store = CalibratedStore::open(folder_).value();
  ASSERT_TRUE(store.keep("key", some_weights()).has_value());
  const std::string whole = read_file(store.file_of("key")).value();
  const auto find_with = [&](const std::string& content) {
    std::ofstream(store.file_of("key"), std::ios::binary | std::ios::trunc) << content;
    return store.find("key").has_value();
  };
  EXPECT_TRUE(find_with(whole));
  Random random(2, "damage");
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(find_with(whole.substr(0, random.below(whole.size()))));
    std::string flipped = whole;
    const size_t at = random.below(whole.size());
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.below(8)));
    EXPECT_FALSE(find_with(flipped)) << at;
  }
  EXPECT_FALSE(find_with(""));
}

TEST_F(CalibratedStoreTest, a_file_of_another_key_is_not_taken) {
  const CalibratedStore store = CalibratedStore::open(folder_).value();
  ASSERT_TRUE(store.keep("key", some_weights()).has_value());
  std::filesystem::copy_file(store.file_of("key"), store.file_of("collides"));
  EXPECT_FALSE(store.find("collides").has_value());
}

}  // namespace
}  // namespace assay
