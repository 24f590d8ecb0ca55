// Sixteen lanes as one 512-bit register. The names are those of vector_portable.inl, which says what each
// does.

constexpr int kFloatRows = 8, kFloatTiles = 3, kFewFloatTiles = 2, kFloatVectorTiles = 4;
constexpr int kIntegerRows = 6, kIntegerTiles = 2, kIntegerVectorTiles = 4;

using Lanes = __m512;
using Ints = __m512i;
using WeightBytes = __m512i;
using Quad = __m512i;
constexpr int kInt8Offset = 0;
constexpr int32_t kDotBias = 0x4b400000;  // the bits of 1.5 * 2^23
constexpr float kMinusDotBias = -0x1.8p23F;

KERNEL_INLINE __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>(n <= 0 ? 0 : n >= 16 ? 0xffff : (1 << n) - 1);
}

KERNEL_INLINE Lanes splat(float x) {
  return _mm512_set1_ps(x);
}
KERNEL_INLINE Lanes load(const float* p) {
  return _mm512_loadu_ps(p);
}
KERNEL_INLINE void store(float* p, Lanes a) {
  _mm512_storeu_ps(p, a);
}
KERNEL_INLINE Lanes load_first(const float* p, int n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
KERNEL_INLINE void store_first(float* p, Lanes a, int n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), a);
}
KERNEL_INLINE Lanes keep_first(Lanes a, int n, float fill) {
  return _mm512_mask_blend_ps(first_lanes(n), splat(fill), a);
}
KERNEL_INLINE Lanes add(Lanes a, Lanes b) {
  return _mm512_add_ps(a, b);
}
KERNEL_INLINE Lanes sub(Lanes a, Lanes b) {
  return _mm512_sub_ps(a, b);
}
KERNEL_INLINE Lanes mul(Lanes a, Lanes b) {
  return _mm512_mul_ps(a, b);
}
KERNEL_INLINE Lanes div(Lanes a, Lanes b) {
  return _mm512_div_ps(a, b);
}
KERNEL_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmadd_ps(a, b, c);
}
KERNEL_INLINE Lanes max(Lanes a, Lanes b) {
  return _mm512_max_ps(a, b);
}
KERNEL_INLINE Lanes min(Lanes a, Lanes b) {
  return _mm512_min_ps(a, b);
}
KERNEL_INLINE Lanes round_even(Lanes a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
KERNEL_INLINE Lanes scale_by_power(Lanes a, Lanes k) {
  return _mm512_scalef_ps(a, k);
}

KERNEL_INLINE float reduce_add(Lanes a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
KERNEL_INLINE float reduce_max(Lanes a) {
  return _mm512_reduce_max_ps(a);
}

KERNEL_INLINE Lanes load_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
KERNEL_INLINE Lanes load_bf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
KERNEL_INLINE Lanes load_signed_bytes(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
KERNEL_INLINE void store_bf16(uint16_t* p, Lanes a) {
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(result));
}
KERNEL_INLINE void store_f16(uint16_t* p, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
KERNEL_INLINE int32_t store_signed_bytes(int8_t* p, Lanes a) {
  const __m512i codes = _mm512_cvtps_epi32(a);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(codes));
  return _mm512_reduce_add_epi32(codes);
}
KERNEL_INLINE uint32_t largest_magnitude_bits(Lanes a, uint32_t at_least) {
  const __m512i magnitudes = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7fffffff));
  const uint32_t largest = _mm512_reduce_max_epu32(magnitudes);
  return largest > at_least ? largest : at_least;
}

KERNEL_INLINE Ints zero_ints() {
  return _mm512_setzero_si512();
}
KERNEL_INLINE Lanes to_lanes(Ints a) {
  return _mm512_cvtepi32_ps(a);
}
KERNEL_INLINE Ints sub_ints(Ints a, int32_t b) {
  return _mm512_sub_epi32(a, _mm512_set1_epi32(b));
}

KERNEL_INLINE Ints splat_ints(int32_t x) {
  return _mm512_set1_epi32(x);
}
// One fused multiply-add: matmul_integer.inl says why it is exact up to its one rounding.
KERNEL_INLINE Lanes scale_dots(Ints dots, Lanes scale, Lanes minus_bias) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(dots), scale, minus_bias);
}
// acc += w * x. Written as assembly for the same reason as add_dots.
KERNEL_INLINE void add_product(Lanes& acc, Lanes w, Lanes x) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
}
KERNEL_INLINE int64_t opaque(int64_t x) {
  asm("" : "+r"(x));
  return x;
}

template <Codes kCodes>
KERNEL_INLINE WeightBytes load_codes(const uint8_t* p) {
  return _mm512_loadu_si512(p);
}
KERNEL_INLINE void store_codes(uint8_t* p, WeightBytes w) {
  _mm512_storeu_si512(p, w);
}
KERNEL_INLINE void load_code_halves(const uint8_t* p, WeightBytes& low, WeightBytes& high) {
  const __m512i mask = _mm512_set1_epi8(15);
  const __m512i pairs = _mm512_loadu_si512(p);
  low = _mm512_and_si512(pairs, mask);
  high = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), mask);
}
KERNEL_INLINE Quad load_quad(const int8_t* x) {
  int32_t quad;
  std::memcpy(&quad, x, 4);
  return _mm512_set1_epi32(quad);
}
// Written as assembly because gcc copies accumulators around the intrinsic.
template <Codes kCodes>
KERNEL_INLINE void add_dots(Ints& acc, WeightBytes w, Quad x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
}

// Sixteen fp8 codes, zero-extended to 32 bits.
template <Format kFormat>
KERNEL_INLINE Lanes fp8_lanes(__m512i codes) {
  const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(codes, _mm512_set1_epi32(0x80)), 8);
  const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi32(0x7f));
  if constexpr (kFormat == Format::kFp8E5M2) {
    // e5m2 is the upper byte of an f16.
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_or_si512(sign, _mm512_slli_epi32(magnitude, 8))));
  }
  // e4m3's bits in an f16 are the value over 2^8, subnormals included; 0x7f is NaN.
  const __m256i half = _mm512_cvtepi32_epi16(_mm512_or_si512(sign, _mm512_slli_epi32(magnitude, 7)));
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f));
  const Lanes value = mul(_mm512_cvtph_ps(half), splat(256.0F));
  return _mm512_mask_blend_ps(nan, value, splat(std::numeric_limits<float>::quiet_NaN()));
}

template <Format kFormat>
KERNEL_INLINE void load_unit(const std::byte* p, Lanes* out) {
  const __m512i bits = _mm512_loadu_si512(p);
  if constexpr (kFormat == Format::kF32) {
    out[0] = _mm512_castsi512_ps(bits);
  } else if constexpr (kFormat == Format::kBF16) {
    out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    out[1] = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  } else if constexpr (kFormat == Format::kF16) {
    out[0] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits));
    out[1] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  } else if constexpr (kFormat == Format::kInt4) {
    const __m512i mask = _mm512_set1_epi32(15);
    for (int u = 0; u < 4; ++u) {
      const auto shift = static_cast<unsigned>(8 * u);
      out[u] = to_lanes(_mm512_and_si512(_mm512_srli_epi32(bits, shift), mask));
      out[u + 4] = to_lanes(_mm512_and_si512(_mm512_srli_epi32(bits, shift + 4), mask));
    }
  } else {
    for (int u = 0; u < 4; ++u) {
      const __m512i codes =
          _mm512_and_si512(_mm512_srli_epi32(bits, static_cast<unsigned>(8 * u)), _mm512_set1_epi32(0xff));
      if constexpr (kFormat == Format::kInt8) {
        out[u] = to_lanes(codes);
      } else {
        out[u] = fp8_lanes<kFormat>(codes);
      }
    }
  }
}

KERNEL_INLINE void transpose16(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = load(src + i * src_stride);
  for (int i = 0; i < 16; i += 2) {  // pairs of rows, within each 128-bit part
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // four rows
    for (int j = 0; j < 2; ++j) {
      const __m512d low = _mm512_castps_pd(b[i + j]), high = _mm512_castps_pd(b[i + j + 2]);
      a[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      a[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  }
  for (int j = 0; j < 4; ++j) {  // 4 x 4 parts of 4 rows each
    const __m512 p = _mm512_shuffle_f32x4(a[j], a[4 + j], 0x44),
                 q = _mm512_shuffle_f32x4(a[j], a[4 + j], 0xee);
    const __m512 r = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0x44),
                 s = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0xee);
    store(dst + j * dst_stride, _mm512_shuffle_f32x4(p, r, 0x88));
    store(dst + (4 + j) * dst_stride, _mm512_shuffle_f32x4(p, r, 0xdd));
    store(dst + (8 + j) * dst_stride, _mm512_shuffle_f32x4(q, s, 0x88));
    store(dst + (12 + j) * dst_stride, _mm512_shuffle_f32x4(q, s, 0xdd));
  }
}

KERNEL_INLINE void load_pairs(const float* p, Lanes& even, Lanes& odd) {
  const __m512i index = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const Lanes a = load(p), b = load(p + 16);
  even = _mm512_permutex2var_ps(a, index, b);
  odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(index, _mm512_set1_epi32(1)), b);
}
KERNEL_INLINE void store_pairs(float* p, Lanes even, Lanes odd) {
  const __m512i index = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  store(p, _mm512_permutex2var_ps(even, index, odd));
  store(p + 16, _mm512_permutex2var_ps(even, _mm512_add_epi32(index, _mm512_set1_epi32(8)), odd));
}
