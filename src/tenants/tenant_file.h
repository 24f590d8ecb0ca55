// The file of API keys and limits (TOML), or one key from the environment, as a table.
//
//   [[tenant]]
//   name = "search"
//   keys = ["sk-..."]                  # at least 8 characters each; and / or:
//   key_sha256 = ["9f86d0..."]         # what `printf %s KEY | sha256sum` prints
//   key_env = ["SEARCH_KEY"]           # names of environment variables
//   weight = 3                         # every key below is optional
//   priority = 0
//   requests_in_flight = 8
//   requests_per_minute = 600
//   tokens_per_minute = 60000
//   ttft_bound = "2 s"
//   at_ttft_bound = "refuse"           # or "queue"
//   admin = false
//
// Failure: kInvalidArgument with file, line, tenant and field; keys are never repeated in a message.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tenants/tenant_policy.h"

namespace assay {

using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

Result<TenantTable> parse_tenants(std::string_view toml, std::string_view where,
                                  const ReadVariable& variable = environment_variable);

struct TenantFile {
  TenantTable tenants;
  std::vector<std::string> warnings;  // e.g. that everyone on this machine may read the file
};
Result<TenantFile> read_tenant_file(const std::filesystem::path& path,
                                    const ReadVariable& variable = environment_variable);

// One tenant "default", an admin, with this key.
Result<TenantTable> tenant_of_key(std::string_view key, std::string_view where);

}  // namespace assay
