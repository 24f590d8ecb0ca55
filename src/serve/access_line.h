// One line of the access log: a JSON object with the same ids as the traces. Never holds what a prompt or an
// answer says. Pure.
#pragma once

#include <string>

#include "http/server.h"
#include "serve/request_facts.h"

namespace assay {

std::string to_access_line(const RequestFacts& facts);

}  // namespace assay
