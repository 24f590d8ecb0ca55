#include "tokenizer/nfc/nfc.h"

#include <gtest/gtest.h>

#include "tokenizer/recorded.h"

namespace assay::tokenizer_internal {
namespace {

// data/nfc.json: unicodedata.normalize("NFC", string) for the recorded strings that it changes:
//   python3 -c 'import json, unicodedata as u; s = json.load(open("strings.json"));
//     print(json.dumps({str(i): u.normalize("NFC", t) for i, t in enumerate(s) if u.normalize("NFC", t) !=
//     t}))'
TEST(Nfc, agrees_with_python_unicodedata) {
  const std::map<size_t, std::string> expected = tokenizer_test::recorded_nfc();
  ASSERT_GT(expected.size(), 100u);
  const auto& strings = tokenizer_test::recorded_strings();
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto changed = expected.find(i);
    EXPECT_EQ(normalise_nfc(strings[i]), changed == expected.end() ? strings[i] : changed->second) << i;
  }
}

TEST(Nfc, hangul_and_ordered_marks_compose) {
  EXPECT_EQ(normalise_nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(normalise_nfc("\uD558\u11AB"), "\uD55C");
  EXPECT_EQ(normalise_nfc("a\u0308\u0323"), "\u1EA1\u0308");  // the dot below goes first
  EXPECT_EQ(normalise_nfc("\u0915\u093C"), "\u0915\u093C");   // excluded from composition
  EXPECT_EQ(normalise_nfc("\u0301e"), "\u0301e");             // a mark without a base
}

TEST(Nfc, invalid_bytes_pass_and_separate) {
  EXPECT_EQ(normalise_nfc("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_EQ(normalise_nfc("\xE2\x82"
                          "e\u0301\xC3"),
            "\xE2\x82\u00E9\xC3");
}

}  // namespace
}  // namespace assay::tokenizer_internal
