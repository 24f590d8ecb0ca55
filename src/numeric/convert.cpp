#include "numeric/convert.h"

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

template <class Code, class Encode>
ConversionCounts encode_each(std::span<const float> src, std::span<std::byte> dst, float overflow,
                             Encode encode) {
  CHECK_OP(dst.size(), ==, src.size() * sizeof(Code));
  ConversionCounts counts;
  for (size_t i = 0; i < src.size(); ++i) {
    const float value = src[i];
    const Code code = encode(value);
    std::memcpy(dst.data() + i * sizeof(Code), &code, sizeof(Code));
    counts.saturated += std::fabs(value) >= overflow;
    counts.nan += value != value;
  }
  return counts;
}

template <class Code, class Decode>
void decode_each(std::span<const std::byte> src, std::span<float> dst, Decode decode) {
  CHECK_OP(src.size(), ==, dst.size() * sizeof(Code));
  for (size_t i = 0; i < dst.size(); ++i) {
    Code code;
    std::memcpy(&code, src.data() + i * sizeof(Code), sizeof(Code));
    dst[i] = decode(code);
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
      return encode_each<uint16_t>(src, dst, kF16Overflow, f32_to_f16_bits);
    case Format::kBF16:
      return encode_each<uint16_t>(src, dst, kBf16Overflow, f32_to_bf16_bits);
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
      return decode_each<uint16_t>(src, dst, f16_bits_to_f32);
    case Format::kBF16:
      return decode_each<uint16_t>(src, dst, bf16_bits_to_f32);
    case Format::kFp8E4M3:
      return decode_each<uint8_t>(src, dst, e4m3_bits_to_f32);
    case Format::kFp8E5M2:
      return decode_each<uint8_t>(src, dst, e5m2_bits_to_f32);
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  refuse(format);
}

}  // namespace assay
