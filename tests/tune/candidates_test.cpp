#include "tune/candidates.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(Candidates, are_distinct_and_survive_their_text_form) {
  for (const bool integers : {false, true}) {
    std::set<std::string> seen;
    for (const Precision& precision : default_candidates(integers)) {
      EXPECT_TRUE(seen.insert(to_string(precision)).second) << to_string(precision);
      const auto parsed = parse_precision(to_string(precision));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(*parsed, precision);
      EXPECT_NE(precision, reference_precision());
      EXPECT_TRUE(integers || !precision.weights.as_shipped);
    }
    EXPECT_GE(seen.size(), 6U);
    EXPECT_EQ(seen.contains("w=file a=int8 kv=bf16"), integers);
  }
}

TEST(Candidates, the_reference_is_f32_throughout) {
  EXPECT_EQ(to_string(reference_precision()), "w=f32 a=f32 kv=f32");
}

}  // namespace
}  // namespace assay
