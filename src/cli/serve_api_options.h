// Flags of `assay serve` about who may use it: API keys from a file or from the environment.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "tenants/tenant_policy.h"

namespace assay {

struct ServeApiOptions {
  std::string api_keys;  // file; empty: ASSAY_API_KEY, or no keys
};

void add_api_options(CLI::App& app, ServeApiOptions& options);

// What the options say now; empty: no keys are asked for. Warnings go to the log. Failure: as
// read_tenant_file(); kInvalidArgument when file and environment both give keys.
Result<TenantTable> read_tenants(const ServeApiOptions& options);

// "2 tenants, keys.toml": for the lines at the start.
std::string describe_tenants(const ServeApiOptions& options, const TenantTable& tenants);

}  // namespace assay
