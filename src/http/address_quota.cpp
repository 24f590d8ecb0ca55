#include "http/address_quota.h"

#include <algorithm>

#include "base/check.h"

namespace assay {

AddressQuota::Key AddressQuota::key_of_v4(std::array<uint8_t, 4> address) {
  Key key{};
  key[10] = key[11] = 0xff;  // RFC 4291 2.5.5.2
  std::ranges::copy(address, key.begin() + 12);
  return key;
}

AddressQuota::Key AddressQuota::key_of_v6(const std::array<uint8_t, 16>& address) {
  const bool mapped = std::all_of(address.begin(), address.begin() + 10, [](uint8_t b) { return b == 0; }) &&
                      address[10] == 0xff && address[11] == 0xff;
  if (mapped) return address;
  Key key{};
  std::copy_n(address.begin(), 8, key.begin());
  return key;
}

bool AddressQuota::enter(const Key& key) {
  const int count = ++open_[key];
  return limit_ <= 0 || count <= limit_;
}

void AddressQuota::leave(const Key& key) {
  const auto found = open_.find(key);
  CHECK(found != open_.end());
  if (--found->second == 0) open_.erase(found);
}

}  // namespace assay
