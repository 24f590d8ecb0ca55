// GET / (the live page), /web/{file} (its parts), /debug/state?since=N (what it shows, as JSON).
// The page holds no data and needs no key; its data does.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/server_state.h"

namespace assay {

std::vector<HttpServer::Route> live_routes(ServerState& state);

}  // namespace assay
