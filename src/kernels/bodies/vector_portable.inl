// Sixteen lanes in plain C++. vector_avx2.inl and vector_avx512.inl define the same names; the bodies use
// only these.

// Register blocks: rows x tiles of a product that are accumulated at once.
constexpr int kFloatRows = 2, kFloatTiles = 1, kFewFloatTiles = 1, kFloatVectorTiles = 1;
constexpr int kIntegerRows = 2, kIntegerTiles = 1, kIntegerVectorTiles = 1;

struct Lanes {
  float v[16];
};
struct Ints {
  int32_t v[16];
};
// Four unsigned codes of each lane.
struct WeightBytes {
  uint8_t v[64];
};
// What WeightBytes has subtracted from int8 codes (from int4 codes: always 0).
constexpr int kInt8Offset = 0;
// Four activation codes, the same for every lane.
struct Quad {
  int8_t v[4];
};
// Where integer sums start, and minus what that is when their bits are read as a float: 0 where sums are
// converted.
constexpr int32_t kDotBias = 0;
constexpr float kMinusDotBias = 0;

#define FOR_LANES for (int i = 0; i < 16; ++i)

KERNEL_INLINE Lanes splat(float x) {
  Lanes r;
  FOR_LANES r.v[i] = x;
  return r;
}
KERNEL_INLINE Lanes load(const float* p) {
  Lanes r;
  FOR_LANES r.v[i] = p[i];
  return r;
}
KERNEL_INLINE void store(float* p, const Lanes& a) {
  FOR_LANES p[i] = a.v[i];
}
// The first n lanes, zero behind them.
KERNEL_INLINE Lanes load_first(const float* p, int n) {
  Lanes r;
  FOR_LANES r.v[i] = i < n ? p[i] : 0.0F;
  return r;
}
KERNEL_INLINE void store_first(float* p, const Lanes& a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
// The first n lanes of a, `fill` behind them; n may be negative or beyond 16.
KERNEL_INLINE Lanes keep_first(const Lanes& a, int n, float fill) {
  Lanes r;
  FOR_LANES r.v[i] = i < n ? a.v[i] : fill;
  return r;
}
KERNEL_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] + b.v[i];
  return r;
}
KERNEL_INLINE Lanes sub(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] - b.v[i];
  return r;
}
KERNEL_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] * b.v[i];
  return r;
}
KERNEL_INLINE Lanes div(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] / b.v[i];
  return r;
}
// a * b + c; rounded once where the CPU can.
KERNEL_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] * b.v[i] + c.v[i];
  return r;
}
// As x86 does it: b when either is NaN.
KERNEL_INLINE Lanes max(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return r;
}
KERNEL_INLINE Lanes min(const Lanes& a, const Lanes& b) {
  Lanes r;
  FOR_LANES r.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
  return r;
}
// To the nearest integer, ties to even; |a| must be below 2^22.
KERNEL_INLINE Lanes round_even(const Lanes& a) {
  constexpr float kMagic = 0x1.8p23F;
  Lanes r;
  FOR_LANES r.v[i] = (a.v[i] + kMagic) - kMagic;
  return r;
}
// a * 2^k for integer-valued k in [-300, 300], in two exact-or-last steps.
KERNEL_INLINE Lanes scale_by_power(const Lanes& a, const Lanes& k) {
  Lanes r;
  FOR_LANES {
    // Through the bits, not a conversion: k may be NaN, and then any power will do.
    const uint32_t whole =
        std::bit_cast<uint32_t>(k.v[i] + 0x1.8p23F) - std::bit_cast<uint32_t>(0x1.8p23F) + 512;
    const uint32_t half = whole >> 1;
    r.v[i] = a.v[i] * std::bit_cast<float>((half - 256 + 127) << 23) *
             std::bit_cast<float>((whole - half - 256 + 127) << 23);
  }
  return r;
}
// Sums and maxima over lanes: halves are folded, 8 + 4 + 2 + 1.
KERNEL_INLINE float reduce_add(const Lanes& a) {
  float t[16];
  FOR_LANES t[i] = a.v[i];
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) t[i] += t[i + width];
  }
  return t[0];
}
KERNEL_INLINE float reduce_max(const Lanes& a) {
  float best = a.v[0];
  for (int i = 1; i < 16; ++i) best = a.v[i] > best ? a.v[i] : best;
  return best;
}
KERNEL_INLINE Lanes load_f16(const uint16_t* p) {
  Lanes r;
  FOR_LANES r.v[i] = f16_bits_to_f32(p[i]);
  return r;
}
KERNEL_INLINE Lanes load_bf16(const uint16_t* p) {
  Lanes r;
  FOR_LANES r.v[i] = bf16_bits_to_f32(p[i]);
  return r;
}
KERNEL_INLINE Lanes load_signed_bytes(const int8_t* p) {
  Lanes r;
  FOR_LANES r.v[i] = p[i];
  return r;
}
KERNEL_INLINE void store_bf16(uint16_t* p, const Lanes& a) {
  FOR_LANES p[i] = f32_to_bf16_bits(a.v[i]);
}
KERNEL_INLINE void store_f16(uint16_t* p, const Lanes& a) {
  FOR_LANES p[i] = f32_to_f16_bits(a.v[i]);
}
// Integer-valued lanes in [-128, 127]; returns their sum.
KERNEL_INLINE int32_t store_signed_bytes(int8_t* p, const Lanes& a) {
  int32_t sum = 0;
  FOR_LANES {
    p[i] = static_cast<int8_t>(a.v[i]);
    sum += p[i];
  }
  return sum;
}
// The largest magnitude, as bits without the sign: NaN and infinity are largest of all.
KERNEL_INLINE uint32_t largest_magnitude_bits(const Lanes& a, uint32_t at_least) {
  FOR_LANES {
    const uint32_t magnitude = std::bit_cast<uint32_t>(a.v[i]) & 0x7fffffff;
    at_least = magnitude > at_least ? magnitude : at_least;
  }
  return at_least;
}

KERNEL_INLINE Ints zero_ints() {
  return Ints{};
}
KERNEL_INLINE Lanes to_lanes(const Ints& a) {
  Lanes r;
  FOR_LANES r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
KERNEL_INLINE Ints sub_ints(const Ints& a, int32_t b) {
  Ints r;
  FOR_LANES r.v[i] = a.v[i] - b;
  return r;
}
KERNEL_INLINE Ints splat_ints(int32_t x) {
  Ints r;
  FOR_LANES r.v[i] = x;
  return r;
}
// (dots - kDotBias) * scale, rounded once.
KERNEL_INLINE Lanes scale_dots(const Ints& dots, const Lanes& scale, const Lanes&) {
  return mul(to_lanes(dots), scale);
}
// acc += w * x.
KERNEL_INLINE void add_product(Lanes& acc, const Lanes& w, const Lanes& x) {
  acc = fma(w, x, acc);
}
// x, which the compiler cannot see through: keeps it in a register.
KERNEL_INLINE int64_t opaque(int64_t x) {
  return x;
}
template <Codes kCodes>
KERNEL_INLINE WeightBytes load_codes(const uint8_t* p) {
  WeightBytes r;
  for (int i = 0; i < 64; ++i) r.v[i] = p[i];
  return r;
}
// The two quads of eight int4 codes per lane.
KERNEL_INLINE void load_code_halves(const uint8_t* p, WeightBytes& low, WeightBytes& high) {
  for (int i = 0; i < 64; ++i) {
    low.v[i] = p[i] & 15;
    high.v[i] = p[i] >> 4;
  }
}
KERNEL_INLINE void store_codes(uint8_t* p, const WeightBytes& w) {
  for (int i = 0; i < 64; ++i) p[i] = w.v[i];
}
KERNEL_INLINE Quad load_quad(const int8_t* x) {
  return {{x[0], x[1], x[2], x[3]}};
}
// acc[lane] += sum over j < 4 of w[lane][j] * x[j].
template <Codes kCodes>
KERNEL_INLINE void add_dots(Ints& acc, const WeightBytes& w, const Quad& x) {
  FOR_LANES {
    acc.v[i] +=
        w.v[4 * i] * x.v[0] + w.v[4 * i + 1] * x.v[1] + w.v[4 * i + 2] * x.v[2] + w.v[4 * i + 3] * x.v[3];
  }
}

// kUnit consecutive columns of a tile as f32, integer formats as their codes. p: the start of the unit.
template <Format kFormat>
KERNEL_INLINE void load_unit(const std::byte* p, Lanes* out) {
  if constexpr (kFormat == Format::kF32) {
    out[0] = load(reinterpret_cast<const float*>(p));
  } else if constexpr (kFormat == Format::kF16 || kFormat == Format::kBF16) {
    const auto* values = reinterpret_cast<const uint16_t*>(p);
    for (int u = 0; u < 2; ++u) {
      FOR_LANES {
        const uint16_t bits = values[2 * i + u];
        out[u].v[i] = kFormat == Format::kF16 ? f16_bits_to_f32(bits) : bf16_bits_to_f32(bits);
      }
    }
  } else if constexpr (kFormat == Format::kInt4) {
    const auto* codes = reinterpret_cast<const uint8_t*>(p);
    for (int u = 0; u < 4; ++u) {
      FOR_LANES {
        out[u].v[i] = static_cast<float>(codes[4 * i + u] & 15);
        out[u + 4].v[i] = static_cast<float>(codes[4 * i + u] >> 4);
      }
    }
  } else {
    const auto* codes = reinterpret_cast<const uint8_t*>(p);
    for (int u = 0; u < 4; ++u) {
      FOR_LANES {
        const uint8_t code = codes[4 * i + u];
        out[u].v[i] = kFormat == Format::kFp8E4M3   ? kE4M3Values[code]
                      : kFormat == Format::kFp8E5M2 ? kE5M2Values[code]
                                                    : static_cast<float>(code);
      }
    }
  }
}

// dst[i][j] = src[j][i] for a 16 x 16 block.
KERNEL_INLINE void transpose16(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  for (int j = 0; j < 16; ++j) {
    for (int i = 0; i < 16; ++i) dst[i * dst_stride + j] = src[j * src_stride + i];
  }
}

// exact x[j] = y with the even and odd lanes of 32 consecutive values: for rotations of adjacent pairs.
KERNEL_INLINE void load_pairs(const float* p, Lanes& even, Lanes& odd) {
  FOR_LANES {
    even.v[i] = p[2 * i];
    odd.v[i] = p[2 * i + 1];
  }
}
KERNEL_INLINE void store_pairs(float* p, const Lanes& even, const Lanes& odd) {
  FOR_LANES {
    p[2 * i] = even.v[i];
    p[2 * i + 1] = odd.v[i];
  }
}

#undef FOR_LANES
