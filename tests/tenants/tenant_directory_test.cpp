#include "tenants/tenant_directory.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TenantEntry entry(std::string name, std::vector<std::string> keys) {
  TenantEntry made{{.name = std::move(name)}, {}};
  for (const std::string& key : keys) made.keys.push_back(digest_of_key(key));
  return made;
}

// FIPS 180-4's own example.
TEST(KeyDigest, KnownKey_hasItsSha256) {
  const auto expected = parse_key_digest("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015AD");
  ASSERT_TRUE(expected);
  EXPECT_TRUE(same_digest(digest_of_key("abc"), *expected));
  EXPECT_FALSE(same_digest(digest_of_key("abd"), *expected));
}

TEST(KeyDigest, NotHexadecimal_isRefused) {
  const std::string good(64, 'a');
  EXPECT_TRUE(parse_key_digest(good));
  for (const std::string& bad :
       {std::string(63, 'a'), std::string(65, 'a'), std::string(63, 'a') + "g", std::string()})
    EXPECT_FALSE(parse_key_digest(bad)) << bad;
}

TEST(KeyDigest, OneBitOff_differs) {
  const KeyDigest one = digest_of_key("key");
  for (size_t bit = 0; bit < 256; ++bit) {
    KeyDigest other = one;
    other.at(bit / 8) ^= static_cast<unsigned char>(1U << bit % 8);
    EXPECT_FALSE(same_digest(one, other)) << bit;
  }
}

TEST(TenantDirectory, WithoutTable_everyoneIsTheSameTenant) {
  const TenantDirectory directory;
  EXPECT_FALSE(directory.asks_for_keys());
  ASSERT_NE(directory.find(""), nullptr);
  EXPECT_EQ(directory.find("anything"), directory.find(""));
  EXPECT_EQ(directory.find("")->name(), "default");
}

TEST(TenantDirectory, Keys_leadToTheirTenantAlone) {
  const TenantDirectory directory({entry("a", {"key-a-1", "key-a-2"}), entry("b", {"key-b-1"})});
  EXPECT_TRUE(directory.asks_for_keys());
  EXPECT_EQ(directory.find("key-a-1")->name(), "a");
  EXPECT_EQ(directory.find("key-a-2")->name(), "a");
  EXPECT_EQ(directory.find("key-b-1")->name(), "b");
  for (const char* wrong : {"", "key-a", "key-a-11", "KEY-A-1", " key-a-1"})
    EXPECT_EQ(directory.find(wrong), nullptr) << wrong;
}

TEST(TenantDirectory, Replaced_keepsUsageDropsOldKeysAndLetsRequestsRun) {
  TenantDirectory directory({entry("a", {"key-a-1"}), entry("b", {"key-b-1"})});
  auto running = directory.find("key-a-1")->admit(10);
  auto leaving = directory.find("key-b-1")->admit(10);
  TenantEntry changed = entry("a", {"key-a-2"});
  changed.policy.in_flight_limit = 1;
  directory.replace({changed, entry("c", {"key-c-1"})});
  EXPECT_EQ(directory.find("key-a-1"), nullptr);
  EXPECT_EQ(directory.find("key-b-1"), nullptr);
  const auto a = directory.find("key-a-2");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->usage().in_flight, 1);
  EXPECT_EQ(a->usage().prompt_tokens_total, 10);
  EXPECT_FALSE(a->admit(1)) << "the new limit counts what was running";
  EXPECT_EQ(directory.all().size(), 2U);
  leaving->count_completion(3);
  EXPECT_EQ(leaving->tenant().usage().completion_tokens_total, 3);
}

}  // namespace
}  // namespace assay
