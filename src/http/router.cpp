#include "http/router.h"

#include <algorithm>
#include <optional>
#include <set>

#include "http/url.h"

namespace assay {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> split_segments(std::string_view path) {
  std::vector<std::string> segments;
  size_t start = 1;
  while (start <= path.size()) {
    const size_t slash = std::min(path.find('/', start), path.size());
    segments.emplace_back(path.substr(start, slash - start));
    start = slash + 1;
  }
  return segments;
}

bool is_placeholder(std::string_view segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}
bool takes_rest(std::string_view segment) {
  return is_placeholder(segment) && segment.ends_with("...}");
}

enum class Fit { kNo, kYes, kBadEscape };

Fit fit_segments(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
                 Parameters& out) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (i >= path.size()) return Fit::kNo;
    const std::string_view expected = pattern[i];
    if (!is_placeholder(expected)) {
      if (expected != path[i]) return Fit::kNo;
      continue;
    }
    std::string raw = path[i];
    if (takes_rest(expected)) {
      for (size_t j = i + 1; j < path.size(); ++j) raw += "/" + path[j];
    }
    if (raw.empty()) return Fit::kNo;
    auto value = percent_decode(raw);
    if (!value) return Fit::kBadEscape;
    const size_t name_length = expected.size() - (takes_rest(expected) ? 5 : 2);
    out.emplace_back(std::string(expected.substr(1, name_length)), std::move(*value));
    if (takes_rest(expected)) return Fit::kYes;
  }
  return pattern.size() == path.size() ? Fit::kYes : Fit::kNo;
}

}  // namespace

Result<void> Router::add(std::string_view method, std::string_view pattern, size_t handler) {
  if (!pattern.starts_with('/')) {
    return fail(ErrorCode::kInvalidArgument, pattern, "a route starts with '/'");
  }
  Route route{std::string(method), std::string(pattern), split_segments(pattern), handler};
  for (size_t i = 0; i < route.segments.size(); ++i) {
    const std::string& segment = route.segments[i];
    const bool has_brace = segment.find_first_of("{}") != std::string::npos;
    const bool nameless = segment == "{}" || segment == "{...}";
    if ((has_brace && !is_placeholder(segment)) || nameless ||
        (takes_rest(segment) && i + 1 < route.segments.size())) {
      return fail(ErrorCode::kInvalidArgument, pattern,
                  "'{}' is not a placeholder {{name}} or a final {{name...}}", segment);
    }
  }
  for (const Route& known : routes_) {
    if (known.method == method && known.pattern == pattern) {
      return fail(ErrorCode::kInvalidArgument, pattern, "a {} route for this pattern exists already", method);
    }
  }
  routes_.push_back(std::move(route));
  return {};
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  const std::vector<std::string> segments = split_segments(path);
  std::set<std::string> allowed;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    Parameters parameters;
    const Fit fit = fit_segments(route.segments, segments, parameters);
    if (fit == Fit::kNo) continue;
    if (fit == Fit::kBadEscape) {
      match.kind = Match::Kind::kBadPath;
      return match;
    }
    if (route.method == wanted) {
      match.kind = Match::Kind::kFound;
      match.handler = route.handler;
      match.pattern = route.pattern;
      match.parameters = std::move(parameters);
      return match;
    }
    allowed.insert(route.method);
    if (route.method == "GET") allowed.insert("HEAD");
  }
  if (!allowed.empty()) {
    match.kind = Match::Kind::kMethodNotAllowed;
    for (const std::string& name : allowed) match.allow += (match.allow.empty() ? "" : ", ") + name;
  }
  return match;
}

}  // namespace assay
