// Sends OTLP/HTTP JSON bodies to a collector with the HTTP client.
#pragma once

#include <string>

#include "base/error.h"
#include "telemetry/span_exporter.h"

namespace assay {

// `endpoint` is a base URL, as OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is added unless it ends so. Failure:
// kInvalidArgument when it is no http or https URL. The returned function blocks for at most 10 s.
Result<SpanExporter::Post> make_otlp_post(const std::string& endpoint);

}  // namespace assay
