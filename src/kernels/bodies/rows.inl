// Operations on rows of values: norms, gates, rotations, conversions.

float rms_scale(const float* x, int64_t n, float eps) {
  Lanes sums[4] = {splat(0), splat(0), splat(0), splat(0)};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int j = 0; j < 4; ++j) {
      const Lanes v = load(x + i + 16 * j);
      sums[j] = fma(v, v, sums[j]);
    }
  }
  for (; i < n; i += 16) {
    const Lanes v = load_first(x + i, static_cast<int>(n - i < 16 ? n - i : 16));
    sums[0] = fma(v, v, sums[0]);
  }
  const float sum = reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
  return 1.0F / std::sqrt(sum / static_cast<float>(n) + eps);
}

void scale_by(const float* x, float factor, const float* weight, int64_t n, float* y) {
  const Lanes f = splat(factor);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, mul(mul(load(x + i), f), load(weight + i)));
  for (; i < n; ++i) y[i] = x[i] * factor * weight[i];
}

void gate(GateFunction function, const float* g, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const int m = static_cast<int>(n - i < 16 ? n - i : 16);
    const Lanes v = m == 16 ? load(g + i) : load_first(g + i, m);
    const Lanes u = m == 16 ? load(up + i) : load_first(up + i, m);
    const Lanes out = mul(function == GateFunction::kSilu ? silu(v) : gelu(v), u);
    if (m == 16) {
      store(y + i, out);
    } else {
      store_first(y + i, out, m);
    }
  }
}

void add_to(float* x, const float* y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(x + i, add(load(x + i), load(y + i)));
  for (; i < n; ++i) x[i] += y[i];
}

// One pair by scalars; rounded like the lanes above it only where fma is not involved, so neither uses it.
KERNEL_INLINE void rotate_pair(float& a, float& b, float c, float s) {
  const float first = a * c - b * s;
  const float second = a * s + b * c;
  a = first;
  b = second;
}

KERNEL_INLINE void rotate_lanes(Lanes& a, Lanes& b, const Lanes& c, const Lanes& s) {
  const Lanes first = sub(mul(a, c), mul(b, s));
  b = add(mul(a, s), mul(b, c));
  a = first;
}

KERNEL_INLINE void rope_halves(float* head, int n_pairs, const float* cosines, const float* sines) {
  int i = 0;
  for (; i + 16 <= n_pairs; i += 16) {
    Lanes a = load(head + i), b = load(head + n_pairs + i);
    rotate_lanes(a, b, load(cosines + i), load(sines + i));
    store(head + i, a);
    store(head + n_pairs + i, b);
  }
  for (; i < n_pairs; ++i) rotate_pair(head[i], head[n_pairs + i], cosines[i], sines[i]);
}

KERNEL_INLINE void rope_adjacent(float* head, int n_pairs, const float* cosines, const float* sines) {
  int i = 0;
  for (; i + 16 <= n_pairs; i += 16) {
    Lanes a, b;
    load_pairs(head + 2 * i, a, b);
    rotate_lanes(a, b, load(cosines + i), load(sines + i));
    store_pairs(head + 2 * i, a, b);
  }
  for (; i < n_pairs; ++i) rotate_pair(head[2 * i], head[2 * i + 1], cosines[i], sines[i]);
}

void rope(float* x, int n_heads, int head_dim, int n_pairs, const float* cosines, const float* sines,
          RopeStyle style) {
  for (int h = 0; h < n_heads; ++h, x += head_dim) {
    if (style == RopeStyle::kHalves) {
      rope_halves(x, n_pairs, cosines, sines);
    } else {
      rope_adjacent(x, n_pairs, cosines, sines);
    }
  }
}

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void softmax(float* x, int64_t n) {
  Lanes best = splat(kMinusInfinity);
  for (int64_t i = 0; i < n; i += 16) {
    const int m = static_cast<int>(n - i < 16 ? n - i : 16);
    best = max(keep_first(load_first(x + i, m), m, kMinusInfinity), best);
  }
  const Lanes largest = splat(reduce_max(best));
  Lanes sums = splat(0);
  for (int64_t i = 0; i < n; i += 16) {
    const int m = static_cast<int>(n - i < 16 ? n - i : 16);
    const Lanes e = exponential(sub(load_first(x + i, m), largest));
    store_first(x + i, e, m);
    sums = add(sums, keep_first(e, m, 0));
  }
  const Lanes total = splat(reduce_add(sums));
  for (int64_t i = 0; i < n; i += 16) {
    const int m = static_cast<int>(n - i < 16 ? n - i : 16);
    store_first(x + i, div(load_first(x + i, m), total), m);
  }
}

int64_t argmax(const float* x, int64_t n) {
  // The largest value first, then where it is: the second pass stops early and both are cheap.
  Lanes best = splat(kMinusInfinity);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) best = max(load(x + i), best);
  if (i < n) {
    const int m = static_cast<int>(n - i);
    best = max(keep_first(load_first(x + i, m), m, kMinusInfinity), best);
  }
  const float largest = reduce_max(best);
  for (i = 0; i < n; ++i) {
    if (x[i] == largest) return i;
  }
  return 0;
}

struct Quantiser {
  float scale, inverse;
};

// From the bits of the largest magnitude. The inverse of a tiny one would overflow: it counts as zero. Scales
// have 22 significant bits, so that products with kDotBias are exact.
KERNEL_INLINE Quantiser quantiser_for(uint32_t magnitude_bits) {
  const float largest = std::bit_cast<float>(magnitude_bits);
  if (!(largest < 0x1p100F)) return {std::numeric_limits<float>::quiet_NaN(), 0};
  if (largest < 0x1p-100F) return {0, 0};
  return {std::bit_cast<float>(std::bit_cast<uint32_t>(largest / 127.0F) & ~3U), 127.0F / largest};
}

// kActivationGroup values; `sums` gets two halves.
KERNEL_INLINE float quantise_group(const float* x, int8_t* codes, int32_t* sums) {
  const Lanes a = load(x), b = load(x + 16);
  const Quantiser q = quantiser_for(largest_magnitude_bits(b, largest_magnitude_bits(a, 0)));
  if (q.inverse == 0) {
    std::memset(codes, 0, kActivationGroup);
    sums[0] = sums[1] = 0;
    return q.scale;
  }
  const Lanes inverse = splat(q.inverse);
  sums[0] = store_signed_bytes(codes, round_even(mul(a, inverse)));
  sums[1] = store_signed_bytes(codes + 16, round_even(mul(b, inverse)));
  return q.scale;
}

// A whole row under one scale, which is returned.
KERNEL_INLINE float quantise_row(const float* x, int n, int8_t* codes) {
  uint32_t magnitude = 0;
  for (int i = 0; i < n; i += 16)
    magnitude = largest_magnitude_bits(load_first(x + i, n - i < 16 ? n - i : 16), magnitude);
  const Quantiser q = quantiser_for(magnitude);
  if (q.inverse == 0) {
    std::memset(codes, 0, static_cast<size_t>(n));
    return q.scale;
  }
  int i = 0;
  for (; i + 16 <= n; i += 16) store_signed_bytes(codes + i, round_even(mul(load(x + i), splat(q.inverse))));
  if (i < n) {
    int8_t tail[16];
    store_signed_bytes(tail, round_even(mul(load_first(x + i, n - i), splat(q.inverse))));
    std::memcpy(codes + i, tail, static_cast<size_t>(n - i));
  }
  return q.scale;
}

void quantise(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums) {
  for (int64_t i = 0; i < n; i += kActivationGroup) {
    scales[i / kActivationGroup] = quantise_group(x + i, codes + i, sums + i / 16);
  }
}

void to_bf16(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store_bf16(y + i, load(x + i));
  for (; i < n; ++i) y[i] = f32_to_bf16_bits(x[i]);
}
