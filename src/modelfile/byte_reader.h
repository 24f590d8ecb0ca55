// A cursor over untrusted bytes: every read is checked against what is left, and nothing is allocated here.
// Little-endian, as every container that assay reads. Internal to modelfile. Not thread safe; borrows the
// bytes.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace assay::modelfile_internal {

static_assert(std::endian::native == std::endian::little, "assay reads little-endian files on such machines");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <class T>
    requires std::integral<T> || std::floating_point<T>
  std::optional<T> read() {
    if (remaining() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::optional<std::string_view> read_text(uint64_t length) {
    if (remaining() < length) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace assay::modelfile_internal
