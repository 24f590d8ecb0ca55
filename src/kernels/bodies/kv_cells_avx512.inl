// Cells of KV tiles (kernels/kv_view.h) in 512-bit registers. The names are those of kv_cells_portable.inl,
// which says what each does.

constexpr int kAttentionRows = 6, kLaneRegisters = 32, kCodeRows = 4, kCodeVectors = 2;

using Cells = __m512i;

KERNEL_INLINE Cells load_cells(const std::byte* p) {
  return _mm512_loadu_si512(p);
}
KERNEL_INLINE void split_nibbles(Cells pairs, Cells& low, Cells& high) {
  const __m512i mask = _mm512_set1_epi8(15);
  low = _mm512_and_si512(pairs, mask);
  high = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), mask);
}
KERNEL_INLINE __m512i splat_quad(const void* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return _mm512_set1_epi32(quad);
}
KERNEL_INLINE Ints dot_unsigned(Ints acc, Cells codes, const int8_t* quad) {
  return _mm512_dpbusd_epi32(acc, codes, splat_quad(quad));
}
KERNEL_INLINE Ints dot_signed(Ints acc, Cells codes, const int8_t* quad) {
  return _mm512_dpbusd_epi32(acc, splat_quad(quad), codes);
}
KERNEL_INLINE Ints high_and_low(Ints high, Ints low) {
  return _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
}

// Sixteen f16 in the low halves of cells, sixteen in the high ones.
KERNEL_INLINE void f16_halves(__m512i bits, Lanes& low, Lanes& high) {
  const __m512i order = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26,
                                         24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i sorted = _mm512_permutexvar_epi16(order, bits);
  low = _mm512_cvtph_ps(_mm512_castsi512_si256(sorted));
  high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(sorted, 1));
}
// e4m3's bits in an f16 are the value over 2^8, subnormals included; 0x7f is NaN.
KERNEL_INLINE __m512i e4m3_words(__m512i upper_bytes) {
  const __m512i words =
      _mm512_and_si512(_mm512_srai_epi16(upper_bytes, 1), _mm512_set1_epi16(static_cast<short>(0xbf80)));
  const __mmask32 nan = _mm512_cmpeq_epi16_mask(_mm512_and_si512(words, _mm512_set1_epi16(0x3f80)),
                                                _mm512_set1_epi16(0x3f80));
  return _mm512_mask_mov_epi16(words, nan, _mm512_set1_epi16(0x7e00));
}

template <Format kFormat>
KERNEL_INLINE void decode_cells(const std::byte* p, Lanes* out) {
  const __m512i bits = _mm512_loadu_si512(p);
  if constexpr (kFormat == Format::kF32) {
    out[0] = _mm512_castsi512_ps(bits);
  } else if constexpr (kFormat == Format::kBF16) {
    out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    out[1] = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  } else if constexpr (kFormat == Format::kF16) {
    f16_halves(bits, out[0], out[1]);
  } else if constexpr (kFormat == Format::kFp8E5M2) {
    // e5m2 is the upper byte of an f16.
    f16_halves(_mm512_slli_epi16(bits, 8), out[0], out[2]);
    f16_halves(_mm512_and_si512(bits, _mm512_set1_epi16(static_cast<short>(0xff00))), out[1], out[3]);
  } else {
    static_assert(kFormat == Format::kFp8E4M3);
    f16_halves(e4m3_words(_mm512_slli_epi16(bits, 8)), out[0], out[2]);
    f16_halves(e4m3_words(bits), out[1], out[3]);
    for (int u = 0; u < 4; ++u) out[u] = mul(out[u], splat(256.0F));
  }
}

KERNEL_INLINE Lanes zero_below(Lanes x, float limit, Lanes a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, splat(limit), _CMP_NLT_UQ), a);
}
KERNEL_INLINE Lanes keep_between(Lanes a, int first, int end, float fill) {
  const auto kept = static_cast<__mmask16>(first_lanes(end) & ~first_lanes(first));
  return _mm512_mask_blend_ps(kept, splat(fill), a);
}
KERNEL_INLINE uint32_t largest_bits(const Lanes* a) {
  const __m512i x = _mm512_max_epu32(_mm512_castps_si512(a[0]), _mm512_castps_si512(a[1]));
  const __m512i y = _mm512_max_epu32(_mm512_castps_si512(a[2]), _mm512_castps_si512(a[3]));
  return _mm512_reduce_max_epu32(_mm512_max_epu32(x, y));
}
