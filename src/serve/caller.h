// Who sends a request: the API key in its Authorization header, and what that key's tenant is allowed.
// "Authorization: Bearer KEY" is what OpenAI's clients send. "Basic" with the key as password lets a browser
// show pages; since browsers send it by themselves, also for another site's forms, it opens only requests
// that no form can make: GET, HEAD, and bodies declared as application/json. Source: RFC 6750, RFC 7617.
// Failure: ApiError 401, 403, 429. Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/request_class.h"
#include "http/message.h"
#include "serve/api_error.h"
#include "tenants/tenant_directory.h"

namespace assay {

struct Caller {
  std::shared_ptr<Tenant> tenant;
  bool has_key = false;  // false: the server asks for none
};

ApiResult<Caller> identify_caller(const HttpRequest& request, const TenantDirectory& tenants);

// One request of so many prompt tokens; refused with 429, Retry-After and x-ratelimit headers.
ApiResult<std::shared_ptr<Tenant::Admission>> admit(const Caller& caller, int64_t prompt_tokens);

// x-ratelimit-{limit,remaining,reset}-{requests,tokens} as OpenAI's; nothing where there is no limit.
Headers rate_limit_headers(const Tenant& tenant);

// How a request competes. `priority` as the request has it: where keys are asked for, a tenant may ask for
// less urgency than its own, not for more.
RequestClass share_of(const Caller& caller, std::optional<int> priority);

}  // namespace assay
