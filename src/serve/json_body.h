// A request body to a JSON object, strictly (RFC 8259): valid UTF-8, nothing after the object, bounded
// nesting, and no name twice in one object. JSON leaves the meaning of a doubled name open (section 4), and
// two readers of one request, a filter before the server for instance, must not see different ones. Pure;
// thread safe. Failure: ApiError, status 400, "invalid_json" or "json_too_deep". Memory: proportional to the
// body.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "serve/api_error.h"

namespace assay {

ApiResult<boost::json::object> parse_json_body(std::string_view body, int max_depth);

}  // namespace assay
