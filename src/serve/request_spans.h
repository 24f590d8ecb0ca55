// The spans of a finished generation request: one for the whole, with children queue, prefill and decode for
// the phases that it reached. Attributes by OpenTelemetry's semantic conventions for generative AI (as of
// 1.41, status "development") and for HTTP servers; `assay.*` is ours. Pure.
#pragma once

#include <string>
#include <vector>

#include "serve/request_facts.h"
#include "telemetry/span.h"

namespace assay {

// What every request of a server shares.
struct ServedIdentity {
  std::string model;      // gen_ai.response.model
  std::string precision;  // effective, in words
  std::string address;    // "127.0.0.1:8080"
};

std::vector<Span> to_spans(const RequestFacts& facts, const ServedIdentity& served);

}  // namespace assay
