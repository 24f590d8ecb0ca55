// POST /tokenize (text or a conversation to ids) and /detokenize, GET /tokenizer_info, as vLLM has them.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> token_routes(ServerState& state);

}  // namespace assay
