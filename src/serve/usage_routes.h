// GET /v1/usage: what the caller's tenant has used and its limits; GET /v1/usage?tenants=all, for an admin's
// key: the same of every tenant.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> usage_routes(ServerState& state);

}  // namespace assay
