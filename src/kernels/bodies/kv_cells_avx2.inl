// Cells of KV tiles (kernels/kv_view.h) in pairs of 256-bit registers. The names are those of
// kv_cells_portable.inl, which says what each does.

constexpr int kAttentionRows = 6, kLaneRegisters = 8, kCodeRows = 2, kCodeVectors = 1;

struct Cells {
  __m256i a, b;
};

KERNEL_INLINE Cells load_cells(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
KERNEL_INLINE void split_nibbles(Cells pairs, Cells& low, Cells& high) {
  const __m256i mask = _mm256_set1_epi8(15);
  low = {_mm256_and_si256(pairs.a, mask), _mm256_and_si256(pairs.b, mask)};
  high = {_mm256_and_si256(_mm256_srli_epi16(pairs.a, 4), mask),
          _mm256_and_si256(_mm256_srli_epi16(pairs.b, 4), mask)};
}
KERNEL_INLINE __m256i splat_quad(const void* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return _mm256_set1_epi32(quad);
}
// The 16-bit sums of maddubs hold: 2 * 255 * 64 and 2 * 127 * 127 are below 2^15.
KERNEL_INLINE __m256i dot_half(__m256i acc, __m256i unsigned_bytes, __m256i signed_bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(unsigned_bytes, signed_bytes);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
KERNEL_INLINE Ints dot_unsigned(const Ints& acc, const Cells& codes, const int8_t* quad) {
  const __m256i q = splat_quad(quad);
  return {dot_half(acc.a, codes.a, q), dot_half(acc.b, codes.b, q)};
}
KERNEL_INLINE Ints dot_signed(const Ints& acc, const Cells& codes, const int8_t* quad) {
  const __m256i q = splat_quad(quad);
  return {dot_half(acc.a, q, codes.a), dot_half(acc.b, q, codes.b)};
}
KERNEL_INLINE Ints high_and_low(const Ints& high, const Ints& low) {
  return {_mm256_add_epi32(_mm256_slli_epi32(high.a, 7), low.a),
          _mm256_add_epi32(_mm256_slli_epi32(high.b, 7), low.b)};
}

// Eight cells' low and high f16.
KERNEL_INLINE void f16_halves(__m256i bits, __m256& low, __m256& high) {
  const __m256i lows = _mm256_and_si256(bits, _mm256_set1_epi32(0xffff));
  const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(lows, _mm256_srli_epi32(bits, 16)), 0xd8);
  low = _mm256_cvtph_ps(_mm256_castsi256_si128(both));
  high = _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1));
}
// e4m3's bits in an f16 are the value over 2^8, subnormals included; 0x7f is NaN.
KERNEL_INLINE __m256i e4m3_words(__m256i upper_bytes) {
  const __m256i words =
      _mm256_and_si256(_mm256_srai_epi16(upper_bytes, 1), _mm256_set1_epi16(static_cast<short>(0xbf80)));
  const __m256i largest = _mm256_set1_epi16(0x3f80);
  const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(words, largest), largest);
  return _mm256_or_si256(words, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
}

template <Format kFormat>
KERNEL_INLINE void decode_eight(__m256i bits, __m256* out) {
  if constexpr (kFormat == Format::kF32) {
    out[0] = _mm256_castsi256_ps(bits);
  } else if constexpr (kFormat == Format::kBF16) {
    out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    out[1] = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  } else if constexpr (kFormat == Format::kF16) {
    f16_halves(bits, out[0], out[1]);
  } else if constexpr (kFormat == Format::kFp8E5M2) {
    // e5m2 is the upper byte of an f16.
    f16_halves(_mm256_slli_epi16(bits, 8), out[0], out[2]);
    f16_halves(_mm256_and_si256(bits, _mm256_set1_epi16(static_cast<short>(0xff00))), out[1], out[3]);
  } else {
    static_assert(kFormat == Format::kFp8E4M3);
    f16_halves(e4m3_words(_mm256_slli_epi16(bits, 8)), out[0], out[2]);
    f16_halves(e4m3_words(bits), out[1], out[3]);
    for (int u = 0; u < 4; ++u) out[u] = _mm256_mul_ps(out[u], _mm256_set1_ps(256.0F));
  }
}
template <Format kFormat>
KERNEL_INLINE void decode_cells(const std::byte* p, Lanes* out) {
  __m256 a[kv_unit(kFormat)], b[kv_unit(kFormat)];
  const Cells bits = load_cells(p);
  decode_eight<kFormat>(bits.a, a);
  decode_eight<kFormat>(bits.b, b);
  for (int u = 0; u < kv_unit(kFormat); ++u) out[u] = {a[u], b[u]};
}

KERNEL_INLINE __m256 zero_eight_below(__m256 x, float limit, __m256 a) {
  return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_set1_ps(limit), _CMP_NLT_UQ), a);
}
KERNEL_INLINE Lanes zero_below(const Lanes& x, float limit, const Lanes& a) {
  return {zero_eight_below(x.a, limit, a.a), zero_eight_below(x.b, limit, a.b)};
}
KERNEL_INLINE __m256 keep_eight_between(__m256 a, int first, int end, float fill) {
  const __m256i kept = _mm256_andnot_si256(first_eight(first), first_eight(end));
  return _mm256_blendv_ps(_mm256_set1_ps(fill), a, _mm256_castsi256_ps(kept));
}
KERNEL_INLINE Lanes keep_between(const Lanes& a, int first, int end, float fill) {
  return {keep_eight_between(a.a, first, end, fill), keep_eight_between(a.b, first - 8, end - 8, fill)};
}
KERNEL_INLINE uint32_t largest_bits(const Lanes* a) {
  __m256i most = _mm256_setzero_si256();
  for (int v = 0; v < 4; ++v) {
    most = _mm256_max_epu32(most, _mm256_max_epu32(_mm256_castps_si256(a[v].a), _mm256_castps_si256(a[v].b)));
  }
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1))));
}
