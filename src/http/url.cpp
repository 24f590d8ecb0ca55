#include "http/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "http/message.h"

namespace assay {
namespace {

constexpr size_t kMaxUrlBytes = 8192;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_unreserved(char c) {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_valid_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253 || host.front() == '.' || host.front() == '-') return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '.' || c == '_'; });
}

bool is_valid_ipv6(std::string_view host) {
  if (host.size() < 2 || host.size() > 45) return false;
  return host.find(':') != std::string_view::npos && std::all_of(host.begin(), host.end(), [](char c) {
           return hex_value(c) >= 0 || c == ':' || c == '.';
         });
}

Result<uint16_t> parse_port(std::string_view text, std::string_view where) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > 65535) {
    return fail(ErrorCode::kInvalidArgument, where, "the port must be 1..65535, found '{}'", text);
  }
  return static_cast<uint16_t>(value);
}

// authority = host [":" port]
Result<void> parse_authority(std::string_view authority, std::string_view where, Url& url) {
  if (authority.find('@') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, where, "user names and passwords in a URL are not accepted");
  }
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos || !is_valid_ipv6(authority.substr(1, close - 1))) {
      return fail(ErrorCode::kInvalidArgument, where, "'{}' is not an IPv6 address in brackets", authority);
    }
    url.host = authority.substr(1, close - 1);
    const std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      return fail(ErrorCode::kInvalidArgument, where, "expected ':port' after the address, found '{}'", rest);
    }
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else {
    const size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
    if (!is_valid_host_name(url.host)) {
      return fail(ErrorCode::kInvalidArgument, where, "'{}' is not a host name or address", url.host);
    }
  }
  url.port = url.https ? 443 : 80;
  if (has_port) {
    ASSIGN_OR_RETURN(url.port, parse_port(port, where));
  }
  return {};
}

// Removes "." and ".." segments (RFC 3986 5.2.4).
std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool trailing_slash = false;
  size_t position = 0;
  while (position < path.size()) {
    const size_t slash = path.find('/', position + 1);
    const std::string_view segment = path.substr(position + 1, slash - position - 1);
    trailing_slash = segment == "." || segment == "..";
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (segment != ".") {
      kept.push_back(segment);
    }
    position = slash;
  }
  std::string joined;
  for (const std::string_view segment : kept) joined.append("/").append(segment);
  if (trailing_slash || joined.empty()) joined += '/';
  return joined;
}

}  // namespace

std::string Url::host_header() const {
  const std::string name = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  return port == (https ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::string Url::to_string() const {
  return (https ? "https://" : "http://") + host_header() + target;
}

bool Url::same_origin(const Url& other) const {
  return https == other.https && port == other.port && equals_ignoring_case(host, other.host);
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return fail(ErrorCode::kInvalidArgument, text.substr(0, 64), "URL longer than {} bytes", kMaxUrlBytes);
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      return fail(ErrorCode::kInvalidArgument, "URL",
                  "white space, control or non-ASCII byte {:#04x}; encode it as %XX",
                  static_cast<unsigned char>(c));
    }
  }
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, text, "expected http://host/path or https://host/path");
  }
  Url url;
  url.https = equals_ignoring_case(text.substr(0, colon), "https");
  if (!url.https && !equals_ignoring_case(text.substr(0, colon), "http")) {
    return fail(ErrorCode::kUnsupported, text, "only http and https are supported, found '{}'",
                text.substr(0, colon));
  }
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t authority_end = rest.find_first_of("/?");
  RETURN_IF_ERROR(parse_authority(rest.substr(0, authority_end), text, url));
  if (authority_end != std::string_view::npos) {
    url.target = (rest[authority_end] == '?' ? "/" : "") + std::string(rest.substr(authority_end));
  }
  return url;
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  const size_t colon = reference.find("://");
  if (colon != std::string_view::npos && reference.find_first_of("/?#") > colon) return parse_url(reference);
  const std::string scheme = base.https ? "https:" : "http:";
  if (reference.starts_with("//")) return parse_url(scheme + std::string(reference));
  const std::string origin = scheme + "//" + base.host_header();
  reference = reference.substr(0, reference.find('#'));
  const std::string_view base_path = std::string_view(base.target).substr(0, base.target.find('?'));
  if (reference.empty()) return parse_url(origin + base.target);
  if (reference.starts_with('?')) return parse_url(origin + std::string(base_path) + std::string(reference));
  const size_t query_start = reference.find('?');
  std::string path(reference.substr(0, query_start));
  if (!path.starts_with('/')) path = std::string(base_path.substr(0, base_path.rfind('/') + 1)) + path;
  const std::string_view query = query_start == std::string_view::npos ? "" : reference.substr(query_start);
  return parse_url(origin + remove_dot_segments(path) + std::string(query));
}

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return fail(ErrorCode::kInvalidArgument, text,
                  "'%' at byte {} is not followed by two hexadecimal digits", i);
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string percent_encode_path(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || c == '/') {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace assay
