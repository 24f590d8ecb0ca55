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

// How a head ends must not depend on where it is cut: at its limit, and with empty lines before it.
TEST(RequestParser, cuts_change_nothing_at_the_bounds) {
  for (int excess = -1; excess <= 1; ++excess) {
    for (const char* before : {"", "\r\n", "\r\n\r\n"}) {
      const std::string rest = " HTTP/1.1\r\nHost: x\r\n\r\n";
      const size_t padding = 1024 + static_cast<size_t>(excess + 1) - 1 - 5 - rest.size();
      const std::string text = std::string(before) + "GET /" + std::string(padding, 'a') + rest;
      const bool sound = excess <= 0 && std::string_view(before).size() <= 2;
      for (size_t piece = 1; piece <= text.size(); piece += piece < 8 ? 1 : 509) {
        ParseStatus status;
        EXPECT_EQ(bodies_of(text, piece, status).size(), sound ? 1U : 0U) << piece << " " << excess << before;
        EXPECT_EQ(status == ParseStatus::kFailed, !sound) << piece << " " << excess << before;
      }
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
