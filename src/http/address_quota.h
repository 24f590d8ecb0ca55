// How many connections each client address has open. An IPv6 client is its /64 network: a single host is
// given that many addresses, and could otherwise come from as many as it likes. An IPv4 address written as
// IPv6 counts as IPv4. Not thread safe. Cost: logarithmic in the addresses that are connected.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>

namespace assay {

class AddressQuota {
 public:
  using Key = std::array<uint8_t, 16>;

  explicit AddressQuota(int limit) : limit_(limit) {}  // 0: no limit

  static Key key_of_v4(std::array<uint8_t, 4> address);
  static Key key_of_v6(const std::array<uint8_t, 16>& address);

  bool enter(
      const Key& key);  // counts one more; false when that exceeds the limit (it is counted all the same)
  void leave(const Key& key);
  size_t addresses() const { return open_.size(); }

 private:
  const int limit_;
  std::map<Key, int> open_;
};

}  // namespace assay
