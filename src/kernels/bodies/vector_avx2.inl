// Sixteen lanes as two 256-bit registers. The names are those of vector_portable.inl, which says what each
// does.

constexpr int kFloatRows = 6, kFloatTiles = 1, kFewFloatTiles = 1, kFloatVectorTiles = 2;
constexpr int kIntegerRows = 2, kIntegerTiles = 1, kIntegerVectorTiles = 2;

struct Lanes {
  __m256 a, b;
};
struct Ints {
  __m256i a, b;
};
// int8: magnitudes of code - 128 in a and b, the values in sa and sb. int4: codes in a and b.
struct WeightBytes {
  __m256i a, b, sa, sb;
};
using Quad = __m256i;
constexpr int kInt8Offset = 128;
constexpr int32_t kDotBias = 0;
constexpr float kMinusDotBias = 0;

// The first n of eight lanes, as the sign bits that mask instructions read.
KERNEL_INLINE __m256i first_eight(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

KERNEL_INLINE Lanes splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
KERNEL_INLINE Lanes load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
KERNEL_INLINE void store(float* p, const Lanes& x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
KERNEL_INLINE Lanes load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_eight(n)), _mm256_maskload_ps(p + 8, first_eight(n - 8))};
}
KERNEL_INLINE void store_first(float* p, const Lanes& x, int n) {
  _mm256_maskstore_ps(p, first_eight(n), x.a);
  _mm256_maskstore_ps(p + 8, first_eight(n - 8), x.b);
}
KERNEL_INLINE Lanes keep_first(const Lanes& x, int n, float fill) {
  const __m256 f = _mm256_set1_ps(fill);
  return {_mm256_blendv_ps(f, x.a, _mm256_castsi256_ps(first_eight(n))),
          _mm256_blendv_ps(f, x.b, _mm256_castsi256_ps(first_eight(n - 8)))};
}
KERNEL_INLINE Lanes add(const Lanes& x, const Lanes& y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes sub(const Lanes& x, const Lanes& y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes mul(const Lanes& x, const Lanes& y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes div(const Lanes& x, const Lanes& y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes fma(const Lanes& x, const Lanes& y, const Lanes& z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
KERNEL_INLINE Lanes max(const Lanes& x, const Lanes& y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes min(const Lanes& x, const Lanes& y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
KERNEL_INLINE Lanes round_even(const Lanes& x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
KERNEL_INLINE __m256 scale_eight(__m256 x, __m256 k) {
  const __m256i whole = _mm256_cvtps_epi32(k);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}
KERNEL_INLINE Lanes scale_by_power(const Lanes& x, const Lanes& k) {
  return {scale_eight(x.a, k.a), scale_eight(x.b, k.b)};
}

KERNEL_INLINE float reduce_add(const Lanes& x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
KERNEL_INLINE float reduce_max(const Lanes& x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

KERNEL_INLINE __m256 f16_eight(__m128i half) {
  return _mm256_cvtph_ps(half);
}
KERNEL_INLINE Lanes load_f16(const uint16_t* p) {
  return {f16_eight(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          f16_eight(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
KERNEL_INLINE __m256 bf16_eight(const uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
KERNEL_INLINE Lanes load_bf16(const uint16_t* p) {
  return {bf16_eight(p), bf16_eight(p + 8)};
}
KERNEL_INLINE __m256 signed_eight(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
KERNEL_INLINE Lanes load_signed_bytes(const int8_t* p) {
  return {signed_eight(p), signed_eight(p + 8)};
}

// Two times eight 32-bit values below 2^16, packed in order.
KERNEL_INLINE __m256i pack_words(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
}
KERNEL_INLINE __m256i bf16_bits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
KERNEL_INLINE void store_bf16(uint16_t* p, const Lanes& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), pack_words(bf16_bits(x.a), bf16_bits(x.b)));
}
KERNEL_INLINE void store_f16(uint16_t* p, const Lanes& x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
KERNEL_INLINE int32_t add_eight(__m256i x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
KERNEL_INLINE int32_t store_signed_bytes(int8_t* p, const Lanes& x) {
  const __m256i a = _mm256_cvtps_epi32(x.a), b = _mm256_cvtps_epi32(x.b);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  return add_eight(_mm256_add_epi32(a, b));
}
KERNEL_INLINE uint32_t largest_magnitude_bits(const Lanes& x, uint32_t at_least) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  const __m256i eight = _mm256_max_epu32(_mm256_and_si256(_mm256_castps_si256(x.a), mask),
                                         _mm256_and_si256(_mm256_castps_si256(x.b), mask));
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  const auto largest =
      static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1))));
  return largest > at_least ? largest : at_least;
}

KERNEL_INLINE Ints zero_ints() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
KERNEL_INLINE Lanes to_lanes(const Ints& x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
KERNEL_INLINE Ints sub_ints(const Ints& x, int32_t y) {
  return {_mm256_sub_epi32(x.a, _mm256_set1_epi32(y)), _mm256_sub_epi32(x.b, _mm256_set1_epi32(y))};
}

KERNEL_INLINE __m256i load_bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
KERNEL_INLINE Ints splat_ints(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
KERNEL_INLINE Lanes scale_dots(const Ints& dots, const Lanes& scale, const Lanes&) {
  return mul(to_lanes(dots), scale);
}
KERNEL_INLINE void add_product(Lanes& acc, const Lanes& w, const Lanes& x) {
  acc = fma(w, x, acc);
}
KERNEL_INLINE int64_t opaque(int64_t x) {
  return x;
}
template <Codes kCodes>
KERNEL_INLINE WeightBytes load_codes(const uint8_t* p) {
  if constexpr (kCodes == Codes::kNibbles)
    return {load_bytes(p), load_bytes(p + 32), _mm256_setzero_si256(), _mm256_setzero_si256()};
  // The products of two codes up to 255 with activations would not fit the 16-bit sums; of magnitudes up to
  // 128 they do.
  const __m256i middle = _mm256_set1_epi8(-128);
  const __m256i a = _mm256_xor_si256(load_bytes(p), middle), b = _mm256_xor_si256(load_bytes(p + 32), middle);
  return {_mm256_abs_epi8(a), _mm256_abs_epi8(b), a, b};
}
KERNEL_INLINE void load_code_halves(const uint8_t* p, WeightBytes& low, WeightBytes& high) {
  const __m256i mask = _mm256_set1_epi8(15);
  const __m256i a = load_bytes(p), b = load_bytes(p + 32);
  low.a = _mm256_and_si256(a, mask);
  low.b = _mm256_and_si256(b, mask);
  high.a = _mm256_and_si256(_mm256_srli_epi16(a, 4), mask);
  high.b = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
}
KERNEL_INLINE void store_codes(uint8_t* p, const WeightBytes& w) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), w.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), w.b);
}
KERNEL_INLINE Quad load_quad(const int8_t* x) {
  int32_t quad;
  std::memcpy(&quad, x, 4);
  return _mm256_set1_epi32(quad);
}
KERNEL_INLINE __m256i dot_eight(__m256i acc, __m256i unsigned_codes, __m256i signed_codes) {
  const __m256i pairs = _mm256_maddubs_epi16(unsigned_codes, signed_codes);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <Codes kCodes>
KERNEL_INLINE void add_dots(Ints& acc, const WeightBytes& w, Quad x) {
  if constexpr (kCodes == Codes::kNibbles) {
    acc = {dot_eight(acc.a, w.a, x), dot_eight(acc.b, w.b, x)};
  } else {
    acc = {dot_eight(acc.a, w.a, _mm256_sign_epi8(x, w.sa)),
           dot_eight(acc.b, w.b, _mm256_sign_epi8(x, w.sb))};
  }
}

// Eight fp8 codes, zero-extended to 32 bits.
template <Format kFormat>
KERNEL_INLINE __m256 fp8_eight(__m256i codes) {
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(0x80)), 8);
  const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi32(0x7f));
  constexpr int kShift = kFormat == Format::kFp8E5M2 ? 8 : 7;
  const __m256i words = _mm256_or_si256(sign, _mm256_slli_epi32(magnitude, kShift));
  const __m256 half = f16_eight(_mm256_castsi256_si128(pack_words(words, words)));
  if constexpr (kFormat == Format::kFp8E5M2) return half;
  const __m256 nan = _mm256_castsi256_ps(_mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f)));
  return _mm256_or_ps(_mm256_mul_ps(half, _mm256_set1_ps(256.0F)), nan);  // all ones is a NaN
}

// One 8-lane half of a unit.
template <Format kFormat>
KERNEL_INLINE void load_unit_eight(__m256i bits, __m256* out) {
  if constexpr (kFormat == Format::kF32) {
    out[0] = _mm256_castsi256_ps(bits);
  } else if constexpr (kFormat == Format::kBF16) {
    out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    out[1] = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  } else if constexpr (kFormat == Format::kF16) {
    const __m256i low = _mm256_and_si256(bits, _mm256_set1_epi32(0xffff));
    const __m256i both = pack_words(low, _mm256_srli_epi32(bits, 16));
    out[0] = f16_eight(_mm256_castsi256_si128(both));
    out[1] = f16_eight(_mm256_extracti128_si256(both, 1));
  } else if constexpr (kFormat == Format::kInt4) {
    const __m256i mask = _mm256_set1_epi32(15);
    for (int u = 0; u < 4; ++u) {
      out[u] = _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(bits, 8 * u), mask));
      out[u + 4] = _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(bits, 8 * u + 4), mask));
    }
  } else {
    for (int u = 0; u < 4; ++u) {
      const __m256i codes = _mm256_and_si256(_mm256_srli_epi32(bits, 8 * u), _mm256_set1_epi32(0xff));
      if constexpr (kFormat == Format::kInt8) {
        out[u] = _mm256_cvtepi32_ps(codes);
      } else {
        out[u] = fp8_eight<kFormat>(codes);
      }
    }
  }
}
template <Format kFormat>
KERNEL_INLINE void load_unit(const std::byte* p, Lanes* out) {
  constexpr int kCount = kFormat == Format::kF32                               ? 1
                         : kFormat == Format::kF16 || kFormat == Format::kBF16 ? 2
                         : kFormat == Format::kInt4                            ? 8
                                                                               : 4;
  __m256 a[kCount], b[kCount];
  load_unit_eight<kFormat>(load_bytes(p), a);
  load_unit_eight<kFormat>(load_bytes(p + 32), b);
  for (int u = 0; u < kCount; ++u) out[u] = {a[u], b[u]};
}

KERNEL_INLINE void transpose8(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(src + i * src_stride);
  for (int i = 0; i < 8; i += 2) {  // pairs of rows, within each 128-bit half
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {  // four rows
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int j = 0; j < 4; ++j) {
    _mm256_storeu_ps(dst + j * dst_stride, _mm256_permute2f128_ps(a[j], a[4 + j], 0x20));
    _mm256_storeu_ps(dst + (4 + j) * dst_stride, _mm256_permute2f128_ps(a[j], a[4 + j], 0x31));
  }
}
KERNEL_INLINE void transpose16(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  for (int i = 0; i < 16; i += 8) {
    for (int j = 0; j < 16; j += 8)
      transpose8(src + i * src_stride + j, src_stride, dst + j * dst_stride + i, dst_stride);
  }
}

// Even (or odd) lanes of two registers, in order.
KERNEL_INLINE __m256 in_order(__m256 x) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
}
KERNEL_INLINE void load_pairs(const float* p, Lanes& even, Lanes& odd) {
  const Lanes x = load(p), y = load(p + 16);
  even = {in_order(_mm256_shuffle_ps(x.a, x.b, 0x88)), in_order(_mm256_shuffle_ps(y.a, y.b, 0x88))};
  odd = {in_order(_mm256_shuffle_ps(x.a, x.b, 0xdd)), in_order(_mm256_shuffle_ps(y.a, y.b, 0xdd))};
}
KERNEL_INLINE void store_sixteen_pairs(float* p, __m256 even, __m256 odd) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
}
KERNEL_INLINE void store_pairs(float* p, const Lanes& even, const Lanes& odd) {
  store_sixteen_pairs(p, even.a, odd.a);
  store_sixteen_pairs(p + 16, even.b, odd.b);
}
