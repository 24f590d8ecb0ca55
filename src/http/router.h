// Method and path to handler. A pattern is "/v1/models" or "/v1/models/{id}"; "{id...}" as the last segment
// takes the rest of the path, slashes included. Placeholder values are percent-decoded. HEAD matches GET
// routes. Pure; build it first, then find() may run in parallel. Cost: linear in the routes, servers have
// few.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace assay {

class Router {
 public:
  // kInvalidArgument for a malformed pattern or a second route of the same method and pattern.
  Result<void> add(std::string_view method, std::string_view pattern, size_t handler);

  struct Match {
    enum class Kind { kFound, kNotFound, kMethodNotAllowed, kBadPath } kind = Kind::kNotFound;
    size_t handler = 0;
    std::string pattern;                                          // of the route found
    std::vector<std::pair<std::string, std::string>> parameters;  // kFound
    std::string allow;                                            // kMethodNotAllowed: "GET, HEAD"
  };
  Match find(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;  // "{id}" placeholders as written
    size_t handler;
  };
  std::vector<Route> routes_;
};

}  // namespace assay
