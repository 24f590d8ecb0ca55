// POST /v1/chat/completions and /v1/completions, streaming or not.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> generation_routes(ServerState& state);

}  // namespace assay
