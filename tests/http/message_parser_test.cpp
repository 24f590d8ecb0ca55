#include "http/message_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

// Feeds `text` in pieces of `piece` bytes; the bodies of the requests that came out, and how it ended.
std::vector<std::string> bodies_of(const std::string& text, size_t piece, ParseStatus& status) {
  RequestParser parser({.head_bytes = 1024, .body_bytes = 1024});
  std::vector<std::string> bodies;
  status = ParseStatus::kNeedMore;
  for (size_t start = 0; start < text.size() && status != ParseStatus::kFailed; start += piece) {
    parser.append(text.substr(start, piece));
    while ((status = parser.parse()) == ParseStatus::kDone) bodies.push_back(parser.take().body);
  }
  return bodies;
}

// Found by fuzzing: an empty chunked body whose last chunk arrives in pieces ran into an assertion of
// Beast's.
TEST(RequestParser, last_chunk_may_be_cut_anywhere) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& body :
       {std::string("0\r\n\r\n"), std::string("0\r\nT: u\r\n\r\n"), std::string("0;a=b\r\n\r\n"),
        std::string("1\r\nz\r\n0\r\n\r\n"), std::string("000\r\n\r\n")}) {
    for (size_t piece = 1; piece < 8; ++piece) {
      ParseStatus status;
      const auto bodies = bodies_of(head + body + head + body, piece, status);
      ASSERT_EQ(bodies.size(), 2U) << body << " in pieces of " << piece;
      EXPECT_EQ(bodies[0], body[0] == '1' ? "z" : "");
      EXPECT_EQ(status, ParseStatus::kNeedMore);
    }
  }
}

TEST(ResponseParser, last_chunk_may_be_cut_anywhere_and_data_is_never_held_back) {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
  for (size_t piece = 1; piece < 8; ++piece) {
    std::string body;
    ResponseParser parser({}, false, [&](std::string_view bytes) {
      body += bytes;
      return true;
    });
    ParseStatus status = ParseStatus::kNeedMore;
    for (size_t start = 0; start < text.size(); start += piece) {
      const bool had_head = parser.head_done();
      status = parser.feed(text.substr(start, piece));
      if (!had_head && parser.head_done()) status = parser.feed({});
      if (start + piece >= text.find("\r\n1\r\n")) {
        EXPECT_TRUE(body.starts_with("ab")) << piece;
      }
    }
    EXPECT_EQ(status, ParseStatus::kDone) << piece;
    EXPECT_EQ(body, "abc");
  }
  for (const char* empty : {"0\r\n\r\n", "0\r\nT: u\r\n\r\n"}) {
    ResponseParser parser({}, false, [](std::string_view) { return true; });
    ParseStatus status = ParseStatus::kNeedMore;
    for (const char c : "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(empty)) {
      status = parser.feed(std::string(1, c));
    }
    EXPECT_EQ(status, ParseStatus::kDone);
  }
}

}  // namespace
}  // namespace assay
