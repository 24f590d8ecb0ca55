// The OpenAI-compatible server: routes over http, sequences to the engine, health and metrics.
//
// GET /v1/models, /v1/models/{id}; POST /v1/chat/completions, /v1/completions (streaming or not); GET
// /health, /health/live, /health/ready, /metrics, /version. Every failure is an OpenAI error object with its
// status; none stops the server.
//
// Ownership: shares the engine; it must not be destroyed by anyone while the server runs. Thread safety: any
// thread. Failure: start() reports a taken port or bad address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "serve/served_model.h"
#include "telemetry/metrics.h"

namespace assay {

class ApiServer {
 public:
  // Listens at once; answers generation requests with 503 until set_ready().
  static Result<std::unique_ptr<ApiServer>> start(ServeConfig config, ServedModel model);
  virtual ~ApiServer() = default;  // cuts what runs

  virtual void set_ready() = 0;
  virtual uint16_t port() const = 0;
  virtual std::string address() const = 0;  // "127.0.0.1:8080"
  virtual MetricRegistry& metrics() = 0;

  // HttpServer::reload_tls().
  virtual Result<void> reload_tls() = 0;
  // Keys and limits from now on; requests that run go on.
  virtual void replace_tenants(const TenantTable& table) = 0;

  // Opens the access log's file anew, after it was moved away (SIGHUP).
  virtual void reopen_logs() = 0;

  // No new requests (503 on connections that are open); running ones may end within the time, then they are
  // cut with an error. True when nothing had to be cut. Blocks.
  virtual bool drain(double timeout_seconds) = 0;
};

}  // namespace assay
