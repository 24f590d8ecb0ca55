// Characters as Python's str sees them. The numbers are printed by oracle/record_unicode.py with Python 3.11.
#include "tokenizer/jinja/unicode.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::tokenizer_internal::jinja {
namespace {

uint64_t hash(std::string_view text) {
  uint64_t value = 0xCBF29CE484222325;
  for (char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return value;
}

template <class Visit>
void for_each_character(const Visit& visit) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xD800 || c >= 0xE000) visit(c);
  }
}

uint64_t hash_mapped(std::string (*convert)(std::string_view)) {
  std::string all;
  for_each_character([&](char32_t c) {
    std::string one;
    append_character(one, c);
    all += convert(one);
  });
  return hash(all);
}

uint64_t hash_class(bool (*is_member)(char32_t)) {
  std::string all;
  for_each_character([&](char32_t c) { all += is_member(c) ? '1' : '0'; });
  return hash(all);
}

TEST(JinjaUnicode, case_of_every_character_is_that_of_python) {
  EXPECT_EQ(hash_mapped(to_upper), 0xf1a6102c65729830);
  EXPECT_EQ(hash_mapped(to_lower), 0xc319d02e8283b91e);
  EXPECT_EQ(hash_mapped(to_title), 0x5553b8be0b3cbf35);
  EXPECT_EQ(hash_mapped(capitalize), 0x5553b8be0b3cbf35);
  EXPECT_EQ(hash_mapped(swap_case), 0x416a990af7c79515);
}

TEST(JinjaUnicode, class_of_every_character_is_that_of_python) {
  EXPECT_EQ(hash_class(is_space), 0x4339002695ea3c48);
  EXPECT_EQ(hash_class(is_alphabetic), 0xfc3be67e448c11f9);
  EXPECT_EQ(hash_class(is_digit), 0x709d0df706472f45);
  EXPECT_EQ(hash_class(is_decimal), 0xa08837b17dcca9c9);
  EXPECT_EQ(hash_class(is_numeric), 0x653a3cb4a8899511);
  EXPECT_EQ(hash_class(is_alphanumeric), 0x210491ee43c022ca);
  EXPECT_EQ(hash_class(is_lowercase), 0x390fd9700a718e0);
  EXPECT_EQ(hash_class(is_uppercase), 0x5d17aeb544d1e224);
  EXPECT_EQ(hash_class(is_printable), 0xaa9f1dcf80f4f759);
}

TEST(JinjaUnicode, every_character_survives_encoding_and_decoding) {
  for_each_character([](char32_t c) {
    std::string one;
    append_character(one, c);
    size_t position = 0;
    ASSERT_EQ(decode_character(one, position), c);
    ASSERT_EQ(position, one.size());
  });
}

// All byte strings of up to three bytes: decoding never runs past the end, and what is decoded encodes to the
// same.
TEST(JinjaUnicode, any_bytes_survive_decoding_and_encoding) {
  for (uint32_t bits = 0; bits < 1u << 24; bits += bits < 1u << 17 ? 1 : 97) {
    std::string bytes;
    for (uint32_t rest = bits | 1u << 24; rest > 1; rest >>= 8) bytes += static_cast<char>(rest & 0xFF);
    std::string again;
    for (size_t i = 0; i < bytes.size();) {
      const char32_t c = decode_character(bytes, i);
      ASSERT_LE(i, bytes.size());
      append_character(again, c);
    }
    ASSERT_EQ(again, bytes);
  }
}

}  // namespace
}  // namespace assay::tokenizer_internal::jinja
