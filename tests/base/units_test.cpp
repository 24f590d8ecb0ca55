#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <string>

namespace assay {
namespace {

TEST(FormatBytes, uses_three_digits_and_binary_units) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(20 * kKiB + 512), "20.5 KiB");
  EXPECT_EQ(format_bytes(200 * kMiB), "200 MiB");
  EXPECT_EQ(format_bytes(24 * kGiB), "24.0 GiB");
  EXPECT_EQ(format_bytes(5000 * kGiB), "4.88 TiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16777216 TiB");
}

TEST(FormatBytes, never_prints_1024_of_a_unit_that_has_a_next) {
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(kGiB - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(1023 * kKiB), "1023 KiB");
}

TEST(FormatSeconds, uses_three_digits_and_the_fitting_unit) {
  EXPECT_EQ(format_seconds(0), "0 us");
  EXPECT_EQ(format_seconds(0.0000123), "12.3 us");
  EXPECT_EQ(format_seconds(0.5), "500 ms");
  EXPECT_EQ(format_seconds(2.5), "2.5 s");
  EXPECT_EQ(format_seconds(75), "1 min 15 s");
  EXPECT_EQ(format_seconds(3600), "1 h 0 min");
  EXPECT_EQ(format_seconds(7384), "2 h 3 min");
  EXPECT_EQ(format_seconds(-0.5), "-500 ms");
}

TEST(FormatSeconds, never_prints_a_thousand_in_scientific_form) {
  EXPECT_EQ(format_seconds(0.00099960), "1 ms");
  EXPECT_EQ(format_seconds(0.99960), "1 s");
  EXPECT_EQ(format_seconds(59.97), "1 min 0 s");
  EXPECT_EQ(format_seconds(0.99940), "999 ms");
}

TEST(FormatSeconds, survives_what_is_not_a_duration) {
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(format_seconds(1e300), "2.78e+296 h");
}

TEST(ParseBytes, takes_every_unit_with_or_without_a_space) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096U);
  EXPECT_EQ(parse_bytes("7 B").value(), 7U);
  EXPECT_EQ(parse_bytes("512 MiB").value(), 512 * kMiB);
  EXPECT_EQ(parse_bytes("2GiB").value(), 2 * kGiB);
  EXPECT_EQ(parse_bytes("1.5 GB").value(), 1500000000U);
  EXPECT_EQ(parse_bytes("3 KB").value(), 3000U);
  EXPECT_EQ(parse_bytes("3 KiB").value(), 3072U);
  EXPECT_EQ(parse_bytes("1 MB").value(), 1000000U);
  EXPECT_EQ(parse_bytes("2 TB").value(), 2000000000000U);
  EXPECT_EQ(parse_bytes("1 TiB").value(), 1024 * kGiB);
  EXPECT_EQ(parse_bytes("  1e3 KB ").value(), 1000000U);
  EXPECT_EQ(parse_bytes("0").value(), 0U);
}

TEST(ParseBytes, refuses_odd_input_and_says_so) {
  for (const std::string_view text :
       {"",       " ",       "-1",     "-0",  "nan", "inf",   "infinity", "0x10",   "GiB", "1 gib",
        "1 GiBs", "1 2 GiB", "1,5 GB", "--1", "+1",  "1e400", "1_000",    "4096\n", "\t1", "1 G"}) {
    const auto result = parse_bytes(text);
    ASSERT_FALSE(result.has_value()) << "'" << text << "' gave " << *result;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().where, text);
  }
  EXPECT_FALSE(parse_bytes(std::string_view("5\0GB", 4)).has_value());
  EXPECT_NE(parse_bytes("3 stones").error().what.find("'stones'"), std::string::npos);
}

TEST(ParseBytes, refuses_what_no_file_can_have) {
  EXPECT_FALSE(parse_bytes("9223372036854775808").has_value());
  EXPECT_FALSE(parse_bytes("8388608 TiB").has_value());
  EXPECT_FALSE(parse_bytes("1e300 GiB").has_value());
  EXPECT_EQ(parse_bytes("8388607 TiB").value(), uint64_t{8388607} << 40);
}

TEST(ParseBytes, does_not_depend_on_the_locale) {
  const char* changed = std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  EXPECT_EQ(parse_bytes("1.5 KB").value(), 1500U);
  EXPECT_FALSE(parse_bytes("1,5 KB").has_value());
  if (changed != nullptr) std::setlocale(LC_NUMERIC, "C");
}

TEST(ParseSeconds, takes_every_unit) {
  EXPECT_DOUBLE_EQ(parse_seconds("250 ms").value(), 0.25);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5s").value(), 1.5);
  EXPECT_DOUBLE_EQ(parse_seconds("2 min").value(), 120);
  EXPECT_DOUBLE_EQ(parse_seconds("30us").value(), 30e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1 h").value(), 3600);
  EXPECT_DOUBLE_EQ(parse_seconds("0 s").value(), 0);
}

TEST(ParseSeconds, refuses_bare_numbers_and_unknown_units) {
  for (const std::string_view text : {"5", "", "s", "5 sec", "5 m", "-1 s", "nan s", "5 S", "1 h 5 min"}) {
    const auto result = parse_seconds(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
}

// Printed sizes parse back to within half of the last digit shown: three digits, or a whole number of units.
RC_GTEST_PROP(FormatBytes, parses_back_to_three_digits, (uint64_t bits)) {
  const uint64_t bytes = bits >> (1 + bits % 60);
  const auto back = parse_bytes(format_bytes(bytes));
  RC_ASSERT(back.has_value());
  const double allowed = bytes < kKiB ? 0 : static_cast<double>(bytes) * 0.005;
  RC_ASSERT(std::fabs(static_cast<double>(*back) - static_cast<double>(bytes)) <= allowed);
}

TEST(CeilDiv, rounds_up) {
  EXPECT_EQ(ceil_div(0, 32), 0);
  EXPECT_EQ(ceil_div(1, 32), 1);
  EXPECT_EQ(ceil_div(32, 32), 1);
  EXPECT_EQ(ceil_div(33, 32), 2);
  EXPECT_EQ(round_up(33, 32), 64);
  EXPECT_EQ(round_up(64, 32), 64);
  EXPECT_EQ(round_up(0, 32), 0);
}

}  // namespace
}  // namespace assay
