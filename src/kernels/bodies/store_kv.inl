// Encodes positions into KV tiles (kernels/kv_view.h). One call writes positions of one tile, so that no cell is
// shared between threads.

// One head of one position in ascending order: one code per value (int4 too), f32 as it is.
struct EncodedHead {
  alignas(64) std::byte codes[kMaxHeadDim * 4];
  float scales[kMaxHeadDim / kKvGroup];  // int8: the first
  float minimums[kMaxHeadDim / kKvGroup];
};

void encode_f16(const float* x, int n, uint16_t* out) {
  int i = 0;
  for (; i + 16 <= n; i += 16) store_f16(out + i, load(x + i));
  for (; i < n; ++i) out[i] = f32_to_f16_bits(x[i]);
}

// One group of at most kKvGroup values. The codes are relative to the scale and minimum as f16 holds them.
void encode_int4_group(const float* x, int n, uint8_t* codes, float& scale, float& minimum) {
  float least = x[0], most = x[0];
  bool finite = true;
  for (int i = 0; i < n; ++i) {
    finite = finite && (std::bit_cast<uint32_t>(x[i]) & 0x7f800000) != 0x7f800000;
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  minimum = f16_bits_to_f32(f32_to_f16_bits(least));
  const float range = most > minimum ? most - minimum : 0;  // the rounded minimum may lie above all
  scale = f16_bits_to_f32(f32_to_f16_bits(range / 15.0F));
  constexpr float kLargestF16 = 65504.0F;
  finite = finite && minimum >= -kLargestF16 && minimum <= kLargestF16 && scale <= kLargestF16;
  if (!finite) {
    scale = std::numeric_limits<float>::quiet_NaN();
    minimum = 0;
  }
  const float inverse = finite && scale > 0 ? 1.0F / scale : 0;
  for (int i = 0; i < n; ++i) {
    const float code = inverse == 0 ? 0 : (x[i] - minimum) * inverse + 0.5F;
    codes[i] = static_cast<uint8_t>(code <= 0 ? 0 : code >= 15 ? 15 : static_cast<int>(code));
  }
}

void encode_head(Format format, const float* x, int head_dim, EncodedHead& out) {
  auto* words = reinterpret_cast<uint16_t*>(out.codes);
  auto* bytes = reinterpret_cast<uint8_t*>(out.codes);
  const int padded = kv_padded_dim(head_dim);
  switch (format) {
    case Format::kF32:
      std::memcpy(out.codes, x, static_cast<size_t>(head_dim) * 4);
      break;
    case Format::kBF16:
      to_bf16(x, head_dim, words);
      break;
    case Format::kF16:
      encode_f16(x, head_dim, words);
      break;
    case Format::kFp8E4M3:
      for (int i = 0; i < head_dim; ++i) bytes[i] = f32_to_e4m3_bits(x[i]);
      break;
    case Format::kFp8E5M2:
      for (int i = 0; i < head_dim; ++i) bytes[i] = f32_to_e5m2_bits(x[i]);
      break;
    case Format::kInt8:
      out.scales[0] = quantise_row(x, head_dim, reinterpret_cast<int8_t*>(bytes));
      break;
    case Format::kInt4:
      for (int g = 0; g < kv_groups(head_dim); ++g) {
        const int n = head_dim - g * kKvGroup < kKvGroup ? head_dim - g * kKvGroup : kKvGroup;
        encode_int4_group(x + g * kKvGroup, n, bytes + g * kKvGroup, out.scales[g], out.minimums[g]);
      }
      break;
    case Format::kCount:
      break;
  }
  const int width = kv_bits(format) < 8 ? 1 : kv_bits(format) / 8;
  std::memset(out.codes + head_dim * width, 0, static_cast<size_t>((padded - head_dim) * width));
}

KERNEL_INLINE void set_nibble(std::byte& pair, bool high, std::byte code) {
  pair = high ? (pair & std::byte{0x0f}) | (code << 4) : (pair & std::byte{0xf0}) | code;
}

void place_keys(Format format, const EncodedHead& head, int padded_dim, int slot, std::byte* tile) {
  std::byte* cells = tile + slot * 4;
  if (format == Format::kInt4) {
    for (int d = 0; d < padded_dim; d += 8, cells += 64) {
      for (int j = 0; j < 4; ++j) cells[j] = head.codes[d + j] | (head.codes[d + 4 + j] << 4);
    }
    return;
  }
  const uint32_t offset = format == Format::kInt8 ? 0x80808080 : 0;  // signed code + 128
  const int n_cells = padded_dim / kv_unit(format);
  for (int i = 0; i < n_cells; ++i, cells += 64) {
    uint32_t cell;
    std::memcpy(&cell, head.codes + 4 * i, 4);
    cell ^= offset;
    std::memcpy(cells, &cell, 4);
  }
}

void place_values(Format format, const EncodedHead& head, int padded_dim, int slot, std::byte* tile) {
  const int unit = kv_unit(format), u = slot % unit;
  std::byte* cells = tile + slot / unit * padded_dim * 4;
  const std::byte* codes = head.codes;
  switch (unit) {
    case 1:
      std::memcpy(cells, codes, static_cast<size_t>(padded_dim) * 4);
      return;
    case 2:
      for (int d = 0; d < padded_dim; ++d) std::memcpy(cells + 4 * d + 2 * u, codes + 2 * d, 2);
      return;
    case 4:
      for (int d = 0; d < padded_dim; ++d) cells[4 * d + u] = codes[d];
      return;
    default:
      for (int d = 0; d < padded_dim; ++d) set_nibble(cells[4 * d + u % 4], u >= 4, codes[d]);
      return;
  }
}

void place_scales(Format format, const EncodedHead& head, int head_dim, int slot, std::byte* scales) {
  if (format == Format::kInt8) std::memcpy(scales + 4 * slot, head.scales, 4);
  if (format != Format::kInt4) return;
  for (int g = 0; g < kv_groups(head_dim); ++g, scales += 64) {
    const uint16_t scale = f32_to_f16_bits(head.scales[g]), minimum = f32_to_f16_bits(head.minimums[g]);
    std::memcpy(scales + 2 * slot, &scale, 2);
    std::memcpy(scales + 32 + 2 * slot, &minimum, 2);
  }
}

void store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride, int n_rows,
              int first_position) {
  EncodedHead head;
  const int padded = kv_padded_dim(kv.head_dim);
  for (const bool is_key : {true, false}) {
    const Format format = is_key ? kv.key_format : kv.value_format;
    const float* rows = is_key ? keys : values;
    for (int h = 0; h < kv.n_kv_heads; ++h) {
      std::byte* tile = kv_tile(kv, is_key, h, first_position);
      for (int r = 0; r < n_rows; ++r) {
        const int slot = (first_position + r) % kKvTile;
        encode_head(format, rows + r * row_stride + int64_t{h} * kv.head_dim, kv.head_dim, head);
        if (is_key) {
          place_keys(format, head, padded, slot, tile);
        } else {
          place_values(format, head, padded, slot, tile);
        }
        place_scales(format, head, kv.head_dim, slot, tile + kv_code_bytes(format, kv.head_dim));
      }
    }
  }
}
