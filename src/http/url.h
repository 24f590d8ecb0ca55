// Strict http and https URLs. Source: RFC 3986, restricted to what a client here needs: no user information,
// no fragments kept, no white space or control characters, ports 1..65535. Pure functions. Failure:
// kInvalidArgument, or kUnsupported for another scheme; the message names the part at fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

struct Url {
  bool https = false;
  std::string host;  // "example.org", "127.0.0.1", "::1" (without brackets)
  uint16_t port = 80;
  std::string target = "/";  // path and query, as they are sent

  std::string host_header()
      const;  // host, bracketed when it is IPv6, with the port when it is not the scheme's own
  std::string to_string() const;
  bool same_origin(const Url& other) const;
};

Result<Url> parse_url(std::string_view text);

// A Location header or link seen from `base`: absolute, "//host/path", "/path", "?query" or "relative/path".
Result<Url> resolve_url(const Url& base, std::string_view reference);

// %XX decoding; a stray '%' is an error. '+' is left alone.
Result<std::string> percent_decode(std::string_view text);
// Everything but unreserved characters (RFC 3986 2.3) and '/' becomes %XX.
std::string percent_encode_path(std::string_view text);

}  // namespace assay
