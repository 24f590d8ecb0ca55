#include "cli/serve_api_options.h"

#include <fmt/format.h>

#include "base/log.h"
#include "tenants/tenant_file.h"

namespace assay {
namespace {

constexpr const char* kKeyVariable = "ASSAY_API_KEY";

}  // namespace

void add_api_options(CLI::App& app, ServeApiOptions& options) {
  app.add_option(
      "--api-keys", options.api_keys,
      "file with the keys and limits of each tenant (TOML, docs/serving.md), read again at SIGHUP; "
      "without it: one key from ASSAY_API_KEY, or none");
}

Result<TenantTable> read_tenants(const ServeApiOptions& options) {
  const auto key = environment_variable(kKeyVariable);
  if (options.api_keys.empty()) return key ? tenant_of_key(*key, kKeyVariable) : TenantTable();
  if (key) {
    return fail(ErrorCode::kInvalidArgument, "--api-keys",
                "{} is set too; unset it, or name it with key_env in {}", kKeyVariable, options.api_keys);
  }
  ASSIGN_OR_RETURN(TenantFile file, read_tenant_file(options.api_keys));
  for (const std::string& warning : file.warnings) log_warning("{}", warning);
  return std::move(file.tenants);
}

std::string describe_tenants(const ServeApiOptions& options, const TenantTable& tenants) {
  if (tenants.empty()) return "none: whoever reaches the address may use it";
  if (options.api_keys.empty()) return fmt::format("one, from {}", kKeyVariable);
  return fmt::format("{} tenant{}, from {}", tenants.size(), tenants.size() == 1 ? "" : "s",
                     options.api_keys);
}

}  // namespace assay
