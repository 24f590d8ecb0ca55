#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/check.h"

namespace assay {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0)
    return fail(ErrorCode::kInvalidArgument, "half", "expected an even number, found {}", value);
  return value / 2;
}

Result<void> must_be_even(int value) {
  RETURN_IF_ERROR(half_of(value));
  return {};
}

Result<int> quarter_of(int value) {
  ASSIGN_OR_RETURN(const int half, half_of(value));
  ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Result<std::unique_ptr<int>> boxed(int value) {
  if (value < 0) return fail(ErrorCode::kNotFound, "box", "empty");
  return std::make_unique<int>(value);
}

Result<int> unboxed(int value) {
  std::unique_ptr<int> box;
  ASSIGN_OR_RETURN(box, boxed(value));  // an existing variable, a type that only moves
  return *box;
}

TEST(Error, message_is_where_then_what) {
  EXPECT_EQ((Error{ErrorCode::kIo, "a.txt", "cannot read"}).message(), "a.txt: cannot read");
  EXPECT_EQ((Error{ErrorCode::kIo, "", "cannot read"}).message(), "cannot read");
}

TEST(Error, within_puts_the_outer_place_first_and_keeps_the_rest) {
  const Error inner{ErrorCode::kCorrupt, "tensor 3", "bad type"};
  const Error outer = inner.within("model.gguf");
  EXPECT_EQ(outer.code, ErrorCode::kCorrupt);
  EXPECT_EQ(outer.message(), "model.gguf: tensor 3: bad type");
  EXPECT_EQ((Error{ErrorCode::kIo, "", "gone"}).within("x").message(), "x: gone");
}

TEST(Error, every_code_has_its_own_name) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(ErrorCode::kCount); ++i)
    names.emplace(name(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::kCount));
  EXPECT_EQ(name(ErrorCode::kInvalidArgument), "invalid argument");
  EXPECT_EQ(name(ErrorCode::kInternal), "internal");
}

TEST(Fail, formats_its_arguments) {
  const auto result = half_of(7);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().where, "half");
  EXPECT_EQ(result.error().what, "expected an even number, found 7");
}

TEST(ReturnIfError, passes_success_and_returns_the_error) {
  EXPECT_TRUE(must_be_even(4).has_value());
  ASSERT_FALSE(must_be_even(5).has_value());
  EXPECT_EQ(must_be_even(5).error().what, "expected an even number, found 5");
}

TEST(AssignOrReturn, stops_at_the_first_error) {
  EXPECT_EQ(quarter_of(12).value(), 3);
  EXPECT_EQ(quarter_of(6).error().what, "expected an even number, found 3");
  EXPECT_EQ(quarter_of(5).error().what, "expected an even number, found 5");
}

TEST(AssignOrReturn, moves_what_cannot_be_copied) {
  EXPECT_EQ(unboxed(9).value(), 9);
  EXPECT_EQ(unboxed(-1).error().code, ErrorCode::kNotFound);
}

TEST(CheckDeathTest, says_where_and_what_failed) {
  CHECK(1 + 1 == 2);
  CHECK_OP(1, <, 2);
  EXPECT_DEATH(CHECK(1 + 1 == 3), "error_test.cpp:[0-9]+: CHECK failed: 1 \\+ 1 == 3");
  const int three = 3;
  EXPECT_DEATH(CHECK_OP(three, ==, 4), "CHECK failed: three == 4: 3 vs 4");
}

TEST(Check, evaluates_its_arguments_once) {
  int calls = 0;
  const auto next = [&] { return ++calls; };
  CHECK(next() == 1);
  CHECK_OP(next(), ==, 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace assay
