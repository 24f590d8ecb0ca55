// Which web pages of other origins may use the server (CORS,
// https://fetch.spec.whatwg.org/#http-cors-protocol). Off by default: then browsers let no page of another
// origin read answers, and requests that change or cost something (anything but GET and HEAD) from such a
// page are refused, since a browser sends some of them without asking. Credentials (cookies) are never
// allowed; a page may set Authorization itself. Pure functions. Failure: kInvalidArgument for an origin that
// no browser would send.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/message.h"

namespace assay {

struct CorsPolicy {
  std::vector<std::string> origins;  // "https://chat.example.org", "http://localhost:3000", "null" or "*"

  bool enabled() const { return !origins.empty(); }
};

// The policy with origins in the spelling that browsers use (lower case, without the scheme's own port).
Result<CorsPolicy> check_cors_policy(const CorsPolicy& policy);

struct CorsVerdict {
  Headers headers;                        // for the answer, whatever it is
  std::optional<HttpResponse> preflight;  // the whole answer to an OPTIONS request that asks for permission
  bool refused = false;                   // 403: another origin's page asks for what it may not do
};
// `secure`: the request came over TLS (its own origin is https then).
CorsVerdict judge_origin(const CorsPolicy& policy, const HttpRequest& request, bool secure);

}  // namespace assay
