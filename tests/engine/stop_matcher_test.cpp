// Against a search through the whole text, over random texts, pieces and stop strings of a small alphabet.
#include "engine/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace assay {
namespace {

const std::vector<std::string> kCharacters = {"a", "b", "é", "è", "界"};

std::string random_text(int longest, int shortest = 0) {
  std::string text;
  const int n = *rc::gen::inRange(shortest, longest + 1);
  for (int i = 0; i < n; ++i) text += *rc::gen::elementOf(kCharacters);
  return text;
}

struct Found {
  size_t begin = std::string::npos;
  std::string stop;
};

// The stop string that ends first; the longest of those.
Found search(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    Found found;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop) && stop.size() > found.stop.size())
        found = {end - stop.size(), stop};
    if (!found.stop.empty()) return found;
  }
  return {};
}

// The longest end of the text that begins a stop string without being all of it.
size_t must_hold(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops)
    for (size_t n = 1; n < stop.size(); ++n)
      if (text.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
  return longest;
}

RC_GTEST_PROP(StopMatcher, random_texts_match_as_a_search_does, ()) {
  std::vector<std::string> stops;
  const int n_stops = *rc::gen::inRange(0, 5);
  for (int i = 0; i < n_stops; ++i) stops.push_back(random_text(4, 1));
  const std::string text = random_text(40);
  const Found expected = search(text, stops);

  StopMatcher matcher(stops);
  std::string released;
  for (size_t at = 0; at < text.size();) {
    const size_t n = *rc::gen::inRange<size_t>(1, 8);
    released += matcher.push(text.substr(at, n));
    at = std::min(at + n, text.size());
    if (matcher.matched()) break;
    const std::string so_far = text.substr(0, at);
    RC_ASSERT(released == so_far.substr(0, at - must_hold(so_far, stops)));
  }
  RC_ASSERT(matcher.matched() == !expected.stop.empty());
  RC_ASSERT(matcher.stop_text() == expected.stop);
  if (matcher.matched()) {
    RC_ASSERT(released == text.substr(0, expected.begin));
    RC_ASSERT(matcher.finish().empty());
  }
}

RC_GTEST_PROP(StopMatcher, text_without_match_comes_out_whole, ()) {
  const std::vector<std::string> stops = {random_text(4, 2) + "#"};
  const std::string text = random_text(40);
  StopMatcher matcher(stops);
  std::string released;
  for (const char byte : text) released += matcher.push(std::string(1, byte));
  RC_ASSERT(released + matcher.finish() == text);
}

TEST(StopMatcher, match_across_pieces_releases_only_the_text_before) {
  StopMatcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.push("Hello.\n"), "Hello.");
  EXPECT_EQ(matcher.push("\nUs"), "");
  EXPECT_EQ(matcher.push("ing"), "\n\nUsing");
  EXPECT_EQ(matcher.push(" it\n\nUser"), " it");
  EXPECT_EQ(matcher.push(": more"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.stop_text(), "\n\nUser:");
}

TEST(StopMatcher, the_first_to_end_wins_however_the_text_is_cut) {
  for (const size_t piece : {1U, 2U, 4U}) {
    StopMatcher matcher({"abcd", "bc"});
    std::string released;
    for (size_t at = 0; at < 4; at += piece) released += matcher.push(std::string("abcd").substr(at, piece));
    EXPECT_EQ(released, "a");
    EXPECT_EQ(matcher.stop_text(), "bc");
  }
}

}  // namespace
}  // namespace assay
