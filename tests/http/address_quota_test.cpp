#include "http/address_quota.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using V6 = std::array<uint8_t, 16>;

TEST(AddressQuota, counts_each_address_apart_and_forgets_it) {
  AddressQuota quota(2);
  const auto a = AddressQuota::key_of_v4({10, 0, 0, 1});
  const auto b = AddressQuota::key_of_v4({10, 0, 0, 2});
  EXPECT_TRUE(quota.enter(a));
  EXPECT_TRUE(quota.enter(a));
  EXPECT_FALSE(quota.enter(a));
  EXPECT_TRUE(quota.enter(b));
  quota.leave(a);
  quota.leave(a);
  EXPECT_TRUE(quota.enter(a));
  quota.leave(a);
  quota.leave(a);
  quota.leave(b);
  EXPECT_EQ(quota.addresses(), 0U);
}

TEST(AddressQuota, zero_is_no_limit) {
  AddressQuota quota(0);
  for (int i = 0; i < 10000; ++i) EXPECT_TRUE(quota.enter(AddressQuota::key_of_v4({1, 2, 3, 4})));
}

TEST(AddressQuota, ipv6_counts_by_network_and_mapped_ipv4_as_ipv4) {
  const V6 first = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8};
  V6 neighbour = first;
  neighbour[15] = 99;
  V6 stranger = first;
  stranger[7] = 2;
  EXPECT_EQ(AddressQuota::key_of_v6(first), AddressQuota::key_of_v6(neighbour));
  EXPECT_NE(AddressQuota::key_of_v6(first), AddressQuota::key_of_v6(stranger));
  const V6 mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  EXPECT_EQ(AddressQuota::key_of_v6(mapped), AddressQuota::key_of_v4({10, 0, 0, 1}));
  EXPECT_NE(AddressQuota::key_of_v4({10, 0, 0, 2}), AddressQuota::key_of_v4({10, 0, 0, 1}));
}

}  // namespace
}  // namespace assay
