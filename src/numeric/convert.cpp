#include "numeric/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"

namespace assay {
namespace {

// Smallest magnitudes that no longer round to the largest finite value: half a step above it. The tie itself
// rounds up where the largest code is odd (f16, bf16, e5m2) and down where it is even (e4m3).
constexpr float kF16Overflow = 65520.0F;
constexpr float kBf16Overflow = 0x1.FFp127F;
constexpr float kE4M3Overflow = 0x1.D00002p8F;  // the next f32 after 464
constexpr float kE5M2Overflow = 61440.0F;
constexpr float kF32Overflow = std::numeric_limits<float>::infinity();

// Counters of a piece fit 32 bits, the width of the values, so that the loop vectorises.
constexpr size_t kPiece = size_t{1} << 20;

template <class Code, class Encode>
ConversionCounts encode_piece(const float* __restrict src, std::byte* __restrict dst, size_t n,
                              float overflow, Encode encode) {
  uint32_t saturated = 0;
  uint32_t nan = 0;
  for (size_t i = 0; i < n; ++i) {
    const float value = src[i];
    const Code code = encode(value);
    std::memcpy(dst + i * sizeof(Code), &code, sizeof(Code));
    saturated += std::fabs(value) >= overflow ? 1 : 0;
    nan += value != value ? 1 : 0;
  }
  return {saturated, nan};
}

// Each encode and decode is a lambda of its own type, not a function pointer, so that it is inlined.
template <class Code, class Encode>
ConversionCounts encode_each(std::span<const float> src, std::span<std::byte> dst, float overflow,
                             Encode encode) {
  CHECK_OP(dst.size(), ==, src.size() * sizeof(Code));
  ConversionCounts counts;
  for (size_t start = 0; start < src.size(); start += kPiece) {
    const size_t n = std::min(kPiece, src.size() - start);
    const auto piece =
        encode_piece<Code>(src.data() + start, dst.data() + start * sizeof(Code), n, overflow, encode);
    counts.saturated += piece.saturated;
    counts.nan += piece.nan;
  }
  return counts;
}

template <class Code, class Decode>
void decode_each(std::span<const std::byte> src, std::span<float> dst, Decode decode) {
  CHECK_OP(src.size(), ==, dst.size() * sizeof(Code));
  const std::byte* __restrict from = src.data();
  float* __restrict to = dst.data();
  for (size_t i = 0; i < dst.size(); ++i) {
    Code code;
    std::memcpy(&code, from + i * sizeof(Code), sizeof(Code));
    to[i] = decode(code);
  }
}

[[noreturn]] void refuse(Format format) {
  check_failed(__FILE__, __LINE__, "format is a float format", std::string(name(format)));
}

}  // namespace

ConversionCounts encode_floats(Format format, std::span<const float> src, std::span<std::byte> dst) {
  switch (format) {
    case Format::kF32:
      return encode_each<float>(src, dst, kF32Overflow, [](float value) { return value; });
    case Format::kF16:
      return encode_each<uint16_t>(src, dst, kF16Overflow,
                                   [](float value) { return f32_to_f16_bits(value); });
    case Format::kBF16:
      return encode_each<uint16_t>(src, dst, kBf16Overflow,
                                   [](float value) { return f32_to_bf16_bits(value); });
    case Format::kFp8E4M3:
      return encode_each<uint8_t>(src, dst, kE4M3Overflow,
                                  [](float value) { return f32_to_e4m3_bits(value); });
    case Format::kFp8E5M2:
      return encode_each<uint8_t>(src, dst, kE5M2Overflow,
                                  [](float value) { return f32_to_e5m2_bits(value); });
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  refuse(format);
}

void decode_floats(Format format, std::span<const std::byte> src, std::span<float> dst) {
  switch (format) {
    case Format::kF32:
      CHECK_OP(src.size(), ==, dst.size() * sizeof(float));
      if (!dst.empty()) std::memcpy(dst.data(), src.data(), src.size());
      return;
    case Format::kF16:
      return decode_each<uint16_t>(src, dst, [](uint16_t code) { return f16_bits_to_f32(code); });
    case Format::kBF16:
      return decode_each<uint16_t>(src, dst, [](uint16_t code) { return bf16_bits_to_f32(code); });
    case Format::kFp8E4M3:
      return decode_each<uint8_t>(src, dst, [](uint8_t code) { return e4m3_bits_to_f32(code); });
    case Format::kFp8E5M2:
      return decode_each<uint8_t>(src, dst, [](uint8_t code) { return e5m2_bits_to_f32(code); });
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  refuse(format);
}

}  // namespace assay
