#include "http/url.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace assay {
namespace {

TEST(Url, well_formed_parts_are_found) {
  struct Case {
    const char* text;
    bool https;
    const char* host;
    uint16_t port;
    const char* target;
    const char* host_header;
  };
  const std::vector<Case> cases = {
      {"http://example.org", false, "example.org", 80, "/", "example.org"},
      {"HTTPS://example.org/", true, "example.org", 443, "/", "example.org"},
      {"http://127.0.0.1:8080/v1/models", false, "127.0.0.1", 8080, "/v1/models", "127.0.0.1:8080"},
      {"http://h:80/x", false, "h", 80, "/x", "h"},
      {"https://h:80/x", true, "h", 80, "/x", "h:80"},
      {"http://[::1]:5/x?y=z", false, "::1", 5, "/x?y=z", "[::1]:5"},
      {"http://h?q", false, "h", 80, "/?q", "h"},
      {"http://h/a#fragment", false, "h", 80, "/a", "h"},
      {"http://h:65535/%20", false, "h", 65535, "/%20", "h:65535"},
  };
  for (const Case& c : cases) {
    const auto url = parse_url(c.text);
    ASSERT_TRUE(url.has_value()) << c.text << ": " << url.error().message();
    EXPECT_EQ(url->https, c.https) << c.text;
    EXPECT_EQ(url->host, c.host) << c.text;
    EXPECT_EQ(url->port, c.port) << c.text;
    EXPECT_EQ(url->target, c.target) << c.text;
    EXPECT_EQ(url->host_header(), c.host_header) << c.text;
    EXPECT_EQ(parse_url(url->to_string())->to_string(), url->to_string()) << c.text;
  }
}

TEST(Url, malformed_text_is_refused) {
  const std::vector<std::string> bad = {
      "",
      "example.org",
      "http:/h",
      "http://",
      "http:///x",
      "http://:80",
      "http://h:",
      "http://h:0",
      "http://h:65536",
      "http://h:x",
      "http://h:-1",
      "http://h:80x",
      "http://u@h",
      "http://u:p@h/",
      "http://h /x",
      "http://h/\n",
      "http://h/\x7f",
      "http://h/\xC3\xA9",
      "http://.h",
      "http://-h",
      "http://[::1",
      "http://[::1]x",
      "http://[h]/",
      "http://h_\\x/",
      "ftp://h/x",
      "file:///etc/x",
      "http://h%41/",
      "http://[]/",
      std::string("http://h/\0x", 11),
      "http://" + std::string(300, 'a'),
      "http://h/" + std::string(9000, 'a'),
  };
  for (const std::string& text : bad) EXPECT_FALSE(parse_url(text).has_value()) << text;
  EXPECT_EQ(parse_url("ftp://h/x").error().code, ErrorCode::kUnsupported);
}

// Expected values: RFC 3986 5.4 (base http://a/b/c/d;p?q), where the reference does not name a scheme.
TEST(Url, references_resolve_as_the_rfc_says) {
  const Url base = *parse_url("http://a/b/c/d;p?q");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {";x", "http://a/b/c/;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"http://x/y", "http://x/y"},
      {"https://x:8/y", "https://x:8/y"},
      {"/r?u=http://z/", "http://a/r?u=http://z/"},
  };
  for (const auto& [reference, expected] : cases) {
    const auto url = resolve_url(base, reference);
    ASSERT_TRUE(url.has_value()) << reference;
    EXPECT_EQ(url->to_string(), expected) << reference;
  }
}

TEST(Url, percent_coding_reads_back_any_bytes) {
  rc::check([](const std::string& bytes) {
    RC_ASSERT(percent_decode(percent_encode_path(bytes)).value() == bytes);
  });
  for (const char* bad : {"%", "%4", "a%", "%zz", "%4g", "%%41"})
    EXPECT_FALSE(percent_decode(bad).has_value()) << bad;
  EXPECT_EQ(percent_decode("a+b%2B%41").value(), "a+b+A");
}

}  // namespace
}  // namespace assay
