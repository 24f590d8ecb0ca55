// What of `assay serve` concerns connections: limits, TLS, CORS.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/server.h"

namespace assay {

struct ServeNetOptions {
  ServerConfig http;  // the flags write into it
  std::string max_body = "16 MiB";
  std::string max_head = "32 KiB";
  std::string max_held_bodies = "512 MiB";
  std::string max_unsent = "4 MiB";
  std::string tls_certificate;
  std::string tls_key;
  int max_json_depth = 32;
};

void add_serve_net_options(CLI::App& app, ServeNetOptions& options);

// What the flags say, checked: sizes, TLS files (read here already, so that a wrong one is found before
// minutes are spent on loading), origins. Raises this process's limit of open files as far as the connections
// need and the system allows.
Result<ServerConfig> server_config(const ServeNetOptions& options);

}  // namespace assay
