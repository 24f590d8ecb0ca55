#include "base/aligned.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/units.h"

namespace assay {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(size_t bytes) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  const bool large = bytes >= kHugePage;
  const size_t unit = large ? kHugePage : kAlignment;
  if (bytes > SIZE_MAX - unit)
    return fail(ErrorCode::kResourceExhausted, "memory", "{} bytes asked for", bytes);
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* address = std::aligned_alloc(unit, rounded);
  if (address == nullptr) {
    return fail(ErrorCode::kResourceExhausted, "memory", "cannot allocate {}", format_bytes(bytes));
  }
  if (large) ::madvise(address, rounded, MADV_HUGEPAGE);  // a hint; refusal costs speed, not correctness
  std::memset(address, 0, rounded);
  buffer.data_ = static_cast<std::byte*>(address);
  buffer.size_ = bytes;
  return buffer;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  std::free(data_);
}

}  // namespace assay
