#include "tune/measurement_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace assay {
namespace {

std::filesystem::path fresh_folder(const char* name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  return folder;
}

Candidate measured(double mean_kl) {
  Candidate candidate;
  candidate.precision.weights.as_shipped = true;
  candidate.quality.emplace().mean_kl = mean_kl;
  return candidate;
}

TEST(MeasurementStore, keeps_by_key_across_instances) {
  const auto folder = fresh_folder("store_keys");
  auto store = MeasurementStore::open(folder);
  ASSERT_TRUE(store);
  EXPECT_FALSE(store->find("a"));
  ASSERT_TRUE(store->keep("a", measured(0.25)));
  ASSERT_TRUE(store->keep("b", measured(0.5)));
  const auto again = MeasurementStore::open(folder);
  ASSERT_TRUE(again);
  ASSERT_TRUE(again->find("a"));
  EXPECT_EQ(again->find("a")->quality->mean_kl, 0.25);
  EXPECT_TRUE(again->find("a")->precision.weights.as_shipped);
  EXPECT_EQ(again->find("b")->quality->mean_kl, 0.5);
  EXPECT_FALSE(again->find("c"));
}

TEST(MeasurementStore, half_written_or_foreign_file_counts_as_absent) {
  const auto folder = fresh_folder("store_broken");
  auto store = MeasurementStore::open(folder);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->keep("a", measured(0.25)));
  const auto file = std::filesystem::directory_iterator(folder)->path();
  const std::string text = *read_file(file);
  for (const std::string& broken : {text.substr(0, text.size() / 2), std::string(), std::string("{}")}) {
    ASSERT_TRUE(write_file_atomically(file, broken));
    EXPECT_FALSE(store->find("a"));
  }
  ASSERT_TRUE(store->keep("a", measured(0.75)));
  EXPECT_EQ(store->find("a")->quality->mean_kl, 0.75);
}

TEST(MeasurementStore, a_file_in_place_of_the_folder_is_said) {
  const auto path = fresh_folder("store_file");
  ASSERT_TRUE(write_file_atomically(path, "x"));
  const auto store = MeasurementStore::open(path);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message().find("store_file"), std::string::npos);
}

}  // namespace
}  // namespace assay
