// An owning, zero-initialised byte buffer aligned to a cache line, large ones on huge pages where the system
// grants them. The storage of packed weights, KV pages and activations.
// Failure: allocate() returns kResourceExhausted instead of throwing. Thread safety: a plain value.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace assay {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  static Result<AlignedBuffer> allocate(size_t bytes);

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace assay
