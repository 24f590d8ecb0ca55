#include "model/matrix_loader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <span>

#include "base/units.h"
#include "model/matrix_quantiser.h"
#include "numeric/float16.h"
#include "numeric/integer_groups.h"

namespace assay {
namespace {

// The float format that holds the block type's values as they are; kCount when it is no float type.
Format float_format_of(BlockType type) {
  switch (type) {
    case BlockType::kF32:
    case BlockType::kF64:
      return Format::kF32;
    case BlockType::kF16:
      return Format::kF16;
    case BlockType::kBF16:
      return Format::kBF16;
    case BlockType::kFp8E4M3:
      return Format::kFp8E4M3;
    case BlockType::kFp8E5M2:
      return Format::kFp8E5M2;
    case BlockType::kI8:
    case BlockType::kI16:
    case BlockType::kI32:
    case BlockType::kI64:
    case BlockType::kQ4_0:
    case BlockType::kQ4_1:
    case BlockType::kQ5_0:
    case BlockType::kQ5_1:
    case BlockType::kQ8_0:
    case BlockType::kQ2_K:
    case BlockType::kQ3_K:
    case BlockType::kQ4_K:
    case BlockType::kQ5_K:
    case BlockType::kQ6_K:
    case BlockType::kIQ4_NL:
    case BlockType::kIQ4_XS:
    case BlockType::kMXFP4:
    case BlockType::kCount:
      break;
  }
  return Format::kCount;
}

bool all_finite(std::span<const float> values) {
  // A sum of values times zero is NaN as soon as one is NaN or infinite; eight sums let the compiler use
  // registers.
  constexpr size_t kLanes = 8;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane] * 0.0F;
  }
  for (; i < values.size(); ++i) sums[0] += values[i] * 0.0F;
  return std::ranges::all_of(sums, [](float sum) { return sum == 0.0F; });
}

Result<void> check_finite(const Tensor& tensor, std::span<const float> values, std::string_view what) {
  if (all_finite(values)) return {};
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  return fail(ErrorCode::kCorrupt, tensor.name, "{} {} is {}; the checkpoint is damaged", what,
              bad - values.begin(), *bad);
}

// Left uninitialised: decode() fills every value.
struct Values {
  std::unique_ptr<float[]> data;
  size_t size = 0;
  std::span<float> span() { return {data.get(), size}; }
};

Result<Values> decode_all(const Tensor& tensor) {
  Values values;
  values.size = static_cast<size_t>(tensor.n_values());
  values.data.reset(new (std::nothrow) float[values.size]);
  if (!values.data) {
    return fail(ErrorCode::kResourceExhausted, tensor.name, "cannot allocate {} to decode it",
                format_bytes(values.size * sizeof(float)));
  }
  decode(tensor.type, tensor.data, values.span());
  RETURN_IF_ERROR(check_finite(tensor, values.span(), "value"));
  return values;
}

Result<PackedMatrix> load_integers_as_shipped(const Tensor& tensor) {
  auto groups = to_integer_groups(tensor.type, tensor.data, tensor.shape[0], tensor.shape[1]);
  if (!groups) return std::unexpected(groups.error().within(tensor.name));
  RETURN_IF_ERROR(check_finite(tensor, groups->scales, "scale"));
  RETURN_IF_ERROR(check_finite(tensor, groups->minimums, "minimum"));
  return pack_integers(*groups);
}

Result<PackedMatrix> load_floats(const Tensor& tensor, std::span<const float> values, Format format) {
  if (format == Format::kF16) {
    const auto large = std::ranges::find_if(values, [](float value) { return std::abs(value) > kF16Max; });
    if (large != values.end()) {
      return fail(ErrorCode::kUnsupported, tensor.name,
                  "value {} is beyond the range of f16; choose bf16 or f32", *large);
    }
  }
  return pack_floats(values, tensor.shape[0], tensor.shape[1], format);
}

}  // namespace

Result<WeightFormat> executed_format(const Tensor& tensor, const WeightFormat& wanted) {
  const Format stored = float_format_of(tensor.type);
  if (stored == Format::kCount && !has_integer_form(tensor.type)) {
    return fail(ErrorCode::kUnsupported, tensor.name, "is stored as {}, which is no weight format",
                name(tensor.type));
  }
  if (!wanted.as_shipped) {
    if (is_integer(wanted.format)) return wanted;
    return WeightFormat{.format = wanted.format};
  }
  if (stored != Format::kCount) return WeightFormat{.format = stored};
  // One block, converted, tells format and group.
  const BlockLayout block = layout(tensor.type);
  auto groups =
      to_integer_groups(tensor.type, tensor.data.first(static_cast<size_t>(block.bytes)), 1, block.values);
  if (!groups) return std::unexpected(groups.error().within(tensor.name));
  return WeightFormat{.format = groups->format, .group = groups->group};
}

uint64_t packed_bytes(const WeightFormat& executed, int64_t n_outputs, int64_t n_inputs) {
  const auto rows = static_cast<uint64_t>(round_up(n_outputs, kTileRows));
  const auto cols = static_cast<uint64_t>(round_up(n_inputs, kColumnUnit));
  uint64_t bytes = rows * cols * static_cast<uint64_t>(bits(executed.format)) / 8;
  if (is_integer(executed.format)) {
    const auto group = static_cast<uint64_t>(std::max(executed.group, 16));
    bytes += rows * ((cols + group - 1) / group) * 2 * sizeof(float);
  }
  return bytes;
}

Result<PackedMatrix> load_matrix(const Tensor& tensor, const WeightFormat& executed, bool as_shipped) {
  if (as_shipped && has_integer_form(tensor.type)) return load_integers_as_shipped(tensor);
  ASSIGN_OR_RETURN(Values values, decode_all(tensor));
  if (!is_integer(executed.format)) return load_floats(tensor, values.span(), executed.format);
  auto packed = quantise_matrix(values.span(), tensor.shape[0], tensor.shape[1], executed);
  if (!packed) return std::unexpected(packed.error().within(tensor.name));
  return packed;
}

Result<std::vector<float>> decode_matrix(const Tensor& tensor) {
  if (float_format_of(tensor.type) == Format::kCount && !has_integer_form(tensor.type)) {
    return fail(ErrorCode::kUnsupported, tensor.name, "is stored as {}, which is no weight format",
                name(tensor.type));
  }
  std::vector<float> values(static_cast<size_t>(tensor.n_values()));
  decode(tensor.type, tensor.data, values);
  RETURN_IF_ERROR(check_finite(tensor, values, "value"));
  return values;
}

Result<std::vector<float>> load_vector(const Tensor& tensor, int64_t n) {
  if (tensor.shape.size() != 1 || tensor.shape[0] != n) {
    return fail(ErrorCode::kCorrupt, tensor.name, "expected {} values, found shape [{}]", n,
                fmt::join(tensor.shape, ", "));
  }
  if (float_format_of(tensor.type) == Format::kCount) {
    return fail(ErrorCode::kUnsupported, tensor.name, "expected a float type, found {}", name(tensor.type));
  }
  std::vector<float> values(static_cast<size_t>(n));
  decode(tensor.type, tensor.data, values);
  RETURN_IF_ERROR(check_finite(tensor, values, "value"));
  return values;
}

}  // namespace assay
