#include "http/sse.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace assay {

bool operator==(const SseEvent& a, const SseEvent& b) {
  return a.type == b.type && a.data == b.data && a.id == b.id;
}
void PrintTo(const SseEvent& event, std::ostream* out) {
  *out << "{" << event.type << "|" << event.data << "|" << event.id << "}";
}

namespace {

using Events = std::vector<SseEvent>;

Events parse_in_pieces(std::string_view text, Random* random) {
  Events events;
  SseParser parser;
  while (!text.empty()) {
    const size_t n = random == nullptr ? text.size() : 1 + random->below(std::min<size_t>(text.size(), 7));
    const auto fed = parser.feed(text.substr(0, n), [&](const SseEvent& event) { events.push_back(event); });
    EXPECT_TRUE(fed.has_value());
    text.remove_prefix(n);
  }
  return events;
}

// The oracle: the standard's algorithm read off line by line over the whole text, slow and plain.
Events parse_plainly(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::string unified;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      unified += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      unified += text[i];
    }
  }
  Events events;
  std::string type, data, id;
  size_t start = 0;
  for (size_t end; (end = unified.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = unified.substr(start, end - start);
    if (line.empty()) {
      if (!data.empty()) events.push_back({type, data.substr(0, data.size() - 1), id});
      type = data = "";
      continue;
    }
    const size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (!value.empty() && value[0] == ' ') value.erase(0, 1);
    if (colon == 0) continue;
    if (name == "data") data += value + "\n";
    if (name == "event") type = value;
    if (name == "id" && value.find('\0') == std::string::npos) id = value;
  }
  return events;
}

TEST(SseParser, examples_of_the_standard) {
  EXPECT_EQ(parse_in_pieces("data: YHOO\ndata: +2\ndata: 10\n\n", nullptr),
            (Events{{"", "YHOO\n+2\n10", ""}}));
  EXPECT_EQ(
      parse_in_pieces(
          ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
          nullptr),
      (Events{{"", "first event", "1"}, {"", "second event", ""}, {"", " third event", ""}}));
  EXPECT_EQ(parse_in_pieces("data\n\ndata\ndata\n\ndata:", nullptr), (Events{{"", "", ""}, {"", "\n", ""}}));
  EXPECT_EQ(parse_in_pieces("event: add\ndata: 73857293\n\n", nullptr), (Events{{"add", "73857293", ""}}));
}

TEST(SseParser, retry_takes_digits_only) {
  SseParser parser;
  const auto ignore = [](const SseEvent&) {};
  ASSERT_TRUE(parser.feed("retry: -5\nretry: 5x\nretry:\nretry: 99999999999999999999\n", ignore));
  EXPECT_FALSE(parser.retry_milliseconds().has_value());
  ASSERT_TRUE(parser.feed("retry: 1500\n", ignore));
  EXPECT_EQ(parser.retry_milliseconds(), 1500);
}

TEST(SseParser, any_text_in_any_pieces_agrees_with_the_plain_reading) {
  const std::vector<std::string> words = {
      "data",       "event", "id",           "retry",    ":",
      ": ",         " ",     "\n",           "\r",       "\r\n",
      "x",          "\n\n",  "\xEF\xBB\xBF", "\xC3\xA9", std::string("\0", 1),
      "data: a\n\n"};
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed, "sse");
    std::string text;
    const size_t n = random.below(40);
    for (size_t i = 0; i < n; ++i) text += words[random.below(words.size())];
    const Events expected = parse_plainly(text);
    ASSERT_EQ(parse_in_pieces(text, nullptr), expected) << "seed " << seed;
    ASSERT_EQ(parse_in_pieces(text, &random), expected) << "seed " << seed;
  }
}

TEST(SseParser, endless_event_is_refused) {
  for (const char* unit : {"x", "data: x\n"}) {
    SseParser parser(1000);
    Result<void> fed;
    int rounds = 0;
    for (; fed && rounds < 5000; ++rounds) fed = parser.feed(unit, [](const SseEvent&) {});
    ASSERT_FALSE(fed.has_value());
    EXPECT_EQ(fed.error().code, ErrorCode::kResourceExhausted);
    EXPECT_LE(rounds, 1002);
  }
}

TEST(Sse, what_is_written_reads_back) {
  rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
        {{5, rc::gen::inRange<char>(32, 126)}, {1, rc::gen::element('\n', ':', ' ')}}));
    RC_ASSERT(parse_in_pieces(to_sse(text), nullptr) == (Events{{"", text, ""}}));
    const SseEvent full{"kind", text, "7"};
    RC_ASSERT(parse_in_pieces(to_sse(full), nullptr) == Events{full});
  });
}

TEST(Sse, line_breaks_cannot_forge_fields) {
  EXPECT_EQ(parse_in_pieces(to_sse("a\r\nevent: b\rdata: c"), nullptr),
            (Events{{"", "a\nevent: b\ndata: c", ""}}));
  EXPECT_EQ(parse_in_pieces(to_sse(SseEvent{"x\ndata: y", "d", "1\r\n"}), nullptr),
            (Events{{"xdata: y", "d", "1"}}));
}

}  // namespace
}  // namespace assay
