#include "numeric/precision.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace assay {
namespace {

Format any_format() {
  return static_cast<Format>(*rc::gen::inRange(0, kFormatCount));
}

// Fields that are ignored hold their defaults, as after parsing.
WeightFormat any_weight_format() {
  WeightFormat weights;
  weights.as_shipped = *rc::gen::inRange(0, 4) == 0;
  if (weights.as_shipped) return weights;
  weights.format = any_format();
  if (!is_integer(weights.format)) return weights;
  weights.group = *rc::gen::element(16, 32, 64, 96, 128, 1024);
  weights.correction = static_cast<Correction>(*rc::gen::inRange(0, static_cast<int>(Correction::kCount)));
  if (weights.format == Format::kInt4 && weights.group >= 32) {
    weights.sparsity = static_cast<Sparsity>(*rc::gen::inRange(0, static_cast<int>(Sparsity::kCount)));
  }
  return weights;
}

Precision any_precision() {
  Precision precision;
  precision.weights = any_weight_format();
  precision.prefill_activations = any_format();
  precision.decode_activations = any_format();
  precision.kv_key = any_format();
  precision.kv_value = any_format();
  const int n = *rc::gen::inRange(0, 4);
  for (int i = 0; i < n; ++i) {
    precision.exemptions.push_back({*rc::gen::inRange(-1, 200),
                                    static_cast<Role>(*rc::gen::inRange(0, static_cast<int>(Role::kCount))),
                                    any_weight_format()});
  }
  return precision;
}

RC_GTEST_PROP(Precision, parses_back_from_its_text, ()) {
  const Precision precision = any_precision();
  const auto parsed = parse_precision(to_string(precision));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == precision);
}

// Whatever parses is canonical: printing and parsing it again changes nothing.
RC_GTEST_PROP(Precision, mutated_text_is_refused_or_canonical, ()) {
  std::string text = to_string(any_precision());
  const int edits = *rc::gen::inRange(1, 4);
  for (int i = 0; i < edits; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, text.size());
    text[at] = *rc::gen::element('=', '/', ':', '!', '@', '*', ' ', 'a', 'w', '4', '0', '-', '\0', '\xff');
  }
  const auto parsed = parse_precision(text);
  if (parsed) RC_ASSERT(parse_precision(to_string(*parsed)).value() == *parsed);
}

TEST(Precision, text_is_as_documented) {
  EXPECT_EQ(to_string(Precision{}), "w=f32 a=f32 kv=f32");
  Precision precision;
  precision.weights = {.format = Format::kInt4, .group = 32};
  precision.prefill_activations = Format::kF32;
  precision.decode_activations = Format::kInt8;
  precision.kv_key = precision.kv_value = Format::kBF16;
  precision.exemptions = {{3, Role::kDown, {.format = Format::kBF16}},
                          {-1, Role::kOutput, {.as_shipped = true}}};
  EXPECT_EQ(to_string(precision), "w=int4:32 a=f32/int8 kv=bf16 !down@3=bf16 !output@*=file");
}

TEST(Precision, methods_follow_the_group_in_any_order) {
  const auto parsed = parse_precision("w=int4:64/gptq/block50 !down@*=int8/awq");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->weights, (WeightFormat{.format = Format::kInt4,
                                           .group = 64,
                                           .correction = Correction::kGptq,
                                           .sparsity = Sparsity::kBlock50}));
  EXPECT_EQ(to_string(*parsed), "w=int4:64/block50/gptq a=f32 kv=f32 !down@*=int8:32/awq");
  EXPECT_TRUE(parsed->weights.needs_calibration());
  EXPECT_FALSE(parse_weight_format("int4:64/global50/fit").value().needs_calibration());
}

TEST(Precision, parts_come_in_any_order_and_default_to_f32) {
  const auto parsed = parse_precision("  kv=bf16/int8 !gate@0=f16   w=int8 ");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(to_string(*parsed), "w=int8:32 a=f32 kv=bf16/int8 !gate@0=f16");
}

TEST(Precision, wrong_text_is_refused_with_what_was_found) {
  const auto expect_refused = [](std::string_view text, std::string_view part) {
    const auto parsed = parse_precision(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message().find(part), std::string::npos) << parsed.error().message();
  };
  expect_refused("", "w=");
  expect_refused("a=f32 kv=f32", "w=");
  expect_refused("w=", "'' is not a format");
  expect_refused("w=int5", "f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4");
  expect_refused("w=int8:", "found ''");
  expect_refused("w=int8:24", "16 or a multiple of 32");
  expect_refused("w=int8:0", "16 or a multiple of 32");
  expect_refused("w=int8:032", "found '032'");
  expect_refused("w=int8:-32", "found '-32'");
  expect_refused("w=int8:99999999999999999999", "99999999999999999999");
  expect_refused("w=int8:2097152", "1048576");
  expect_refused("w=bf16:32", "only int8 and int4");
  expect_refused("w=file:32", "'file' is not a format");
  expect_refused("w=f32/gptq", "only int8 and int4");
  expect_refused("w=int4/gptq/awq", "found '/awq'");
  expect_refused("w=int4/block50/block50", "found '/block50'");
  expect_refused("w=int4:64/", "found '/'");
  expect_refused("w=int4:64/GPTQ", "found '/GPTQ'");
  expect_refused("w=int8:64/block50", "can be sparse");
  expect_refused("w=int4:16/block50", "can be sparse");
  expect_refused("w=f32 w=f32", "twice");
  expect_refused("w=f32 a=f32/f32/f32", "'f32/f32' is not a format");
  expect_refused("w=f32 a=/f32", "'' is not a format");
  expect_refused("w=f32 x=f32", "found 'x=f32'");
  expect_refused("w=f32 kv", "found 'kv'");
  expect_refused("w=f32 !down=bf16", "found '!down=bf16'");
  expect_refused("w=f32 !=@", "found '!=@'");
  expect_refused("w=f32 !down@=bf16", "a layer number");
  expect_refused("w=f32 !down@-1=bf16", "a layer number");
  expect_refused("w=f32 !sideways@1=bf16", "'sideways' is not a role");
  expect_refused("w=f32\n", "'f32\n' is not a format");
}

TEST(Precision, last_matching_exemption_wins) {
  const auto precision =
      parse_precision("w=int4 !down@*=int8 !down@3=bf16 !up@3=f16 !down@5=f32 !down@5=file");
  ASSERT_TRUE(precision.has_value());
  EXPECT_EQ(to_string(precision->weights_for(0, Role::kDown)), "int8:32");
  EXPECT_EQ(to_string(precision->weights_for(3, Role::kDown)), "bf16");
  EXPECT_EQ(to_string(precision->weights_for(3, Role::kUp)), "f16");
  EXPECT_EQ(to_string(precision->weights_for(5, Role::kDown)), "file");
  EXPECT_EQ(to_string(precision->weights_for(3, Role::kGate)), "int4:32");
  EXPECT_EQ(to_string(precision->weights_for(-1, Role::kDown)), "int8:32");
}

TEST(Precision, activations_follow_the_phase) {
  const auto precision = parse_precision("w=f32 a=bf16/int8");
  ASSERT_TRUE(precision.has_value());
  EXPECT_EQ(precision->activations_for(Phase::kPrefill), Format::kBF16);
  EXPECT_EQ(precision->activations_for(Phase::kDecode), Format::kInt8);
}

TEST(Role, names_parse_back) {
  for (int i = 0; i < static_cast<int>(Role::kCount); ++i) {
    const auto role = static_cast<Role>(i);
    EXPECT_EQ(parse_role(name(role)).value(), role);
  }
  const auto unknown = parse_role("Down");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message().find("attention_query"), std::string::npos);
}

TEST(Format, names_parse_back_and_bits_are_right) {
  const std::array<int, kFormatCount> expected = {32, 16, 16, 8, 8, 8, 4};
  for (int i = 0; i < kFormatCount; ++i) {
    const auto format = static_cast<Format>(i);
    EXPECT_EQ(parse_format(name(format)).value(), format);
    EXPECT_EQ(bits(format), expected[static_cast<size_t>(i)]);
  }
  for (const std::string_view text : {"", "F32", "f32 ", "int", "fp8"}) {
    const auto unknown = parse_format(text);
    ASSERT_FALSE(unknown.has_value()) << text;
    EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace assay
