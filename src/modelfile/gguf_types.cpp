#include "modelfile/gguf_types.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

constexpr std::pair<BlockType, uint32_t> kCodes[] = {
    {BlockType::kF32, 0},     {BlockType::kF16, 1},     {BlockType::kQ4_0, 2},  {BlockType::kQ4_1, 3},
    {BlockType::kQ5_0, 6},    {BlockType::kQ5_1, 7},    {BlockType::kQ8_0, 8},  {BlockType::kQ2_K, 10},
    {BlockType::kQ3_K, 11},   {BlockType::kQ4_K, 12},   {BlockType::kQ5_K, 13}, {BlockType::kQ6_K, 14},
    {BlockType::kIQ4_NL, 20}, {BlockType::kIQ4_XS, 23}, {BlockType::kI8, 24},   {BlockType::kI16, 25},
    {BlockType::kI32, 26},    {BlockType::kI64, 27},    {BlockType::kF64, 28},  {BlockType::kBF16, 30},
    {BlockType::kMXFP4, 39},
};
// Every block type but the two fp8 forms.
static_assert(std::size(kCodes) == static_cast<size_t>(BlockType::kCount) - 2);

constexpr std::pair<uint32_t, std::string_view> kUndecoded[] = {
    {4, "Q4_2"},    {5, "Q4_3"},      {9, "Q8_1"},      {15, "Q8_K"},     {16, "IQ2_XXS"},
    {17, "IQ2_XS"}, {18, "IQ3_XXS"},  {19, "IQ1_S"},    {21, "IQ3_S"},    {22, "IQ2_S"},
    {29, "IQ1_M"},  {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"},
    {35, "TQ2_0"},  {40, "NVFP4"},    {41, "Q1_0"},     {42, "Q2_0"},
};

}  // namespace

uint64_t minimum_bytes(GgufValueType type) {
  static constexpr std::array<uint64_t, static_cast<size_t>(GgufValueType::kCount)> kBytes = {
      1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  CHECK(type < GgufValueType::kCount);
  return kBytes[static_cast<size_t>(type)];
}

std::optional<BlockType> block_type_from_gguf(uint32_t code) {
  for (const auto& [type, number] : kCodes) {
    if (number == code) return type;
  }
  return std::nullopt;
}

std::string_view undecoded_gguf_type_name(uint32_t code) {
  for (const auto& [number, name] : kUndecoded) {
    if (number == code) return name;
  }
  return {};
}

std::optional<uint32_t> gguf_code(BlockType type) {
  for (const auto& [known, number] : kCodes) {
    if (known == type) return number;
  }
  return std::nullopt;
}

}  // namespace assay
