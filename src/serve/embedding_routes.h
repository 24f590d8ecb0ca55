// POST /v1/embeddings: vectors from a decoder's pooled hidden states.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> embedding_routes(ServerState& state);

}  // namespace assay
