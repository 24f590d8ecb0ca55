// Cells of KV tiles (kernels/kv_view.h) in plain C++. kv_cells_avx2.inl and kv_cells_avx512.inl define the same
// names; the attention bodies use only these and those of vector_portable.inl.

// Query rows of a tile, registers that hold Lanes, and the tile of integer sums: rows and vectors of cells.
constexpr int kAttentionRows = 2, kLaneRegisters = 4, kCodeRows = 2, kCodeVectors = 1;

// Sixteen cells as they lie in memory.
struct Cells {
  uint8_t v[64];
};

KERNEL_INLINE Cells load_cells(const std::byte* p) {
  Cells r;
  std::memcpy(r.v, p, sizeof(r.v));
  return r;
}
// The low and the high halves of bytes.
KERNEL_INLINE void split_nibbles(Cells pairs, Cells& low, Cells& high) {
  for (int i = 0; i < 64; ++i) {
    low.v[i] = pairs.v[i] & 15;
    high.v[i] = pairs.v[i] >> 4;
  }
}
// acc[lane] + sum over j < 4 of codes[lane][j] * quad[j]. Unsigned codes want |quad| <= 64; signed codes (not
// -128) want quad in 0..127.
KERNEL_INLINE Ints dot_unsigned(const Ints& acc, const Cells& codes, const int8_t* quad) {
  Ints r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] = acc.v[i];
    for (int j = 0; j < 4; ++j) r.v[i] += codes.v[4 * i + j] * quad[j];
  }
  return r;
}
KERNEL_INLINE Ints dot_signed(const Ints& acc, const Cells& codes, const int8_t* quad) {
  Ints r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] = acc.v[i];
    for (int j = 0; j < 4; ++j) r.v[i] += static_cast<int8_t>(codes.v[4 * i + j]) * quad[j];
  }
  return r;
}
// 128 * high + low.
KERNEL_INLINE Ints high_and_low(const Ints& high, const Ints& low) {
  Ints r;
  for (int i = 0; i < 16; ++i) r.v[i] = high.v[i] * 128 + low.v[i];
  return r;
}

// The unit values of sixteen cells: out[u] holds value u of each.
template <Format kFormat>
KERNEL_INLINE void decode_cells(const std::byte* p, Lanes* out) {
  if constexpr (kFormat == Format::kF32) {
    out[0] = load(reinterpret_cast<const float*>(p));
  } else if constexpr (kFormat == Format::kF16 || kFormat == Format::kBF16) {
    const auto* codes = reinterpret_cast<const uint16_t*>(p);
    for (int i = 0; i < 32; ++i) {
      out[i % 2].v[i / 2] =
          kFormat == Format::kF16 ? f16_bits_to_f32(codes[i]) : bf16_bits_to_f32(codes[i]);
    }
  } else {
    static_assert(kFormat == Format::kFp8E4M3 || kFormat == Format::kFp8E5M2);
    const auto* codes = reinterpret_cast<const uint8_t*>(p);
    for (int i = 0; i < 64; ++i) {
      out[i % 4].v[i / 4] =
          kFormat == Format::kFp8E4M3 ? e4m3_bits_to_f32(codes[i]) : e5m2_bits_to_f32(codes[i]);
    }
  }
}

// a, but zero where x < limit; NaN in x is not below.
KERNEL_INLINE Lanes zero_below(const Lanes& x, float limit, const Lanes& a) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = x.v[i] < limit ? 0.0F : a.v[i];
  return r;
}
// Lanes first .. end - 1 of a, `fill` in the others; both may be negative or beyond 16.
KERNEL_INLINE Lanes keep_between(const Lanes& a, int first, int end, float fill) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = i >= first && i < end ? a.v[i] : fill;
  return r;
}
// The largest bit pattern of 64 values without sign: that of NaN if there is one.
KERNEL_INLINE uint32_t largest_bits(const Lanes* a) {
  uint32_t largest = 0;
  for (int v = 0; v < 4; ++v) {
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(a[v].v[i]);
      largest = bits > largest ? bits : largest;
    }
  }
  return largest;
}
