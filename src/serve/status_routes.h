// What is served and how it is: /v1/models, /v1/models/{id}, /health, /health/live, /health/ready, /metrics,
// /version.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> status_routes(ServerState& state);

}  // namespace assay
