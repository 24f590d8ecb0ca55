// One sequence in KV pages, read back by the layout that kernels/kv_view.h describes and not by the kernels.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/aligned.h"
#include "kernels/backend.h"
#include "kernels/fixtures.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"

namespace assay::kernels_test {

inline constexpr Format kKvFormats[] = {Format::kF32,     Format::kF16,  Format::kBF16, Format::kFp8E4M3,
                                        Format::kFp8E5M2, Format::kInt8, Format::kInt4};

// Pages are shuffled and filled with ones (NaN in every format that has one): reading the unused rest would show.
class Sequence {
 public:
  Sequence(const AttentionShape& shape, Format key, Format value, int page_tokens, int n_positions,
           Random& random)
      : shape_(shape) {
    const int n_blocks = (n_positions + page_tokens - 1) / page_tokens;
    blocks_.resize(static_cast<size_t>(n_blocks));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    for (size_t i = blocks_.size(); i > 1; --i) std::swap(blocks_[i - 1], blocks_[random.below(i)]);
    view_ = {.key_offset = 64,
             .key_format = key,
             .value_format = value,
             .page_tokens = page_tokens,
             .n_kv_heads = shape.n_kv_heads,
             .head_dim = shape.head_dim};
    view_.value_offset = 64 + kv_plane_bytes(key, shape.n_kv_heads, page_tokens, shape.head_dim);
    view_.block_bytes =
        view_.value_offset + kv_plane_bytes(value, shape.n_kv_heads, page_tokens, shape.head_dim);
    memory_ = *AlignedBuffer::allocate(view_.block_bytes * blocks_.size());
    std::memset(memory_.data(), 0xff, memory_.size());
    view_.base = memory_.data();
    view_.blocks = blocks_.data();
    const int64_t width = int64_t{shape.n_kv_heads} * shape.head_dim;
    keys_ = normals(random, n_positions * width);
    values_ = normals(random, n_positions * width);
  }

  // Other keys and values, from a stream of their own.
  void draw(uint64_t seed, int n_positions) {
    Random random(seed, "keys and values");
    const int64_t n = int64_t{n_positions} * shape_.n_kv_heads * shape_.head_dim;
    keys_ = normals(random, n);
    values_ = normals(random, n);
  }

  void store(Backend& backend, int first, int n) {
    const int64_t width = int64_t{shape_.n_kv_heads} * shape_.head_dim;
    backend.store_kv(view_, keys_.data() + first * width, values_.data() + first * width, width, n, first);
  }

  const KvView& view() const { return view_; }
  // As stored: read back from the page.
  double key(int position, int head, int d) const { return read(true, position, head, d); }
  double value(int position, int head, int d) const { return read(false, position, head, d); }
  // What a code of an integer format is worth, and the f16 minimum of int4; 0 for other formats.
  float scale(bool keys, int position, int head, int d) const { return scales(keys, position, head, d).first; }
  float minimum(bool keys, int position, int head, int d) const {
    return scales(keys, position, head, d).second;
  }
  float& original(bool keys, int position, int head, int d) {
    return (keys ? keys_ : values_)[static_cast<size_t>(
        (int64_t{position} * shape_.n_kv_heads + head) * shape_.head_dim + d)];
  }

 private:
  template <class T>
  static T at(const std::byte* p, int64_t index) {
    T value;
    std::memcpy(&value, p + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  int padded_dim() const { return (view_.head_dim + 15) / 16 * 16; }
  // The tile of a position, by the description: blocks, planes, heads, tiles.
  const std::byte* tile(bool keys, int position, int head) const {
    const Format format = keys ? view_.key_format : view_.value_format;
    const size_t codes = static_cast<size_t>(padded_dim() * 16 * bits(format) / 8);
    const int groups = (view_.head_dim + 63) / 64;
    const size_t bytes = codes + (format == Format::kInt8   ? 64
                                  : format == Format::kInt4 ? static_cast<size_t>(64 * groups)
                                                            : 0);
    const int page = position / view_.page_tokens, slot = position % view_.page_tokens;
    const int index = head * (view_.page_tokens / 16) + slot / 16;
    return memory_.data() + static_cast<size_t>(blocks_[static_cast<size_t>(page)]) * view_.block_bytes +
           (keys ? view_.key_offset : view_.value_offset) + static_cast<size_t>(index) * bytes;
  }
  std::pair<float, float> scales(bool keys, int position, int head, int d) const {
    const Format format = keys ? view_.key_format : view_.value_format;
    const std::byte* after = tile(keys, position, head) + padded_dim() * 16 * bits(format) / 8;
    const int slot = position % 16;
    if (format == Format::kInt8) return {at<float>(after, slot), 0};
    if (format != Format::kInt4) return {0, 0};
    after += d / 64 * 64;
    return {f16_bits_to_f32(at<uint16_t>(after, slot)), f16_bits_to_f32(at<uint16_t>(after, 16 + slot))};
  }
  double read(bool keys, int position, int head, int d) const {
    const Format format = keys ? view_.key_format : view_.value_format;
    const int unit = 32 / bits(format), slot = position % 16;
    const int64_t cell = keys ? int64_t{d / unit} * 16 + slot : int64_t{slot / unit} * padded_dim() + d;
    const int j = keys ? d % unit : slot % unit;
    const std::byte* p = tile(keys, position, head) + cell * 4;
    const auto [scale, minimum] = scales(keys, position, head, d);
    switch (format) {
      case Format::kF32:
        return at<float>(p, 0);
      case Format::kF16:
        return f16_bits_to_f32(at<uint16_t>(p, j));
      case Format::kBF16:
        return bf16_bits_to_f32(at<uint16_t>(p, j));
      case Format::kFp8E4M3:
        return e4m3_bits_to_f32(at<uint8_t>(p, j));
      case Format::kFp8E5M2:
        return e5m2_bits_to_f32(at<uint8_t>(p, j));
      case Format::kInt8:
        return static_cast<double>(scale) * (keys ? at<uint8_t>(p, j) - 128 : at<int8_t>(p, j));
      case Format::kInt4:
        return static_cast<double>(scale) * ((at<uint8_t>(p, j % 4) >> (4 * (j / 4))) & 15) +
               static_cast<double>(minimum);
      case Format::kCount:
        break;
    }
    return 0;
  }

  AttentionShape shape_;
  std::vector<int32_t> blocks_;
  AlignedBuffer memory_;
  KvView view_;
  std::vector<float> keys_, values_;
};

}  // namespace assay::kernels_test
