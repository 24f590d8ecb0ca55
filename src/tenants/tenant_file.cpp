#include "tenants/tenant_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/file.h"
#include "base/units.h"
#include "tenants/tenant_directory.h"

namespace assay {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxTenants = 1024;
constexpr size_t kMaxKeys = 4096;
constexpr size_t kMinKeyBytes = 8;
constexpr size_t kMaxKeyBytes = 1024;
constexpr size_t kMaxNameBytes = 64;
constexpr double kMaxRate = 1e12;

constexpr std::array<std::string_view, 12> kFields = {"name",
                                                      "keys",
                                                      "key_sha256",
                                                      "key_env",
                                                      "weight",
                                                      "priority",
                                                      "requests_in_flight",
                                                      "requests_per_minute",
                                                      "tokens_per_minute",
                                                      "ttft_bound",
                                                      "at_ttft_bound",
                                                      "admin"};

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Result<KeyDigest> digest_checked(std::string_view key, std::string_view where) {
  if (key.size() < kMinKeyBytes || key.size() > kMaxKeyBytes) {
    return fail(ErrorCode::kInvalidArgument, where, "a key must have {} to {} characters, found {}",
                kMinKeyBytes, kMaxKeyBytes, key.size());
  }
  // What cannot stand in an Authorization header could never be sent.
  if (!std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7F; }))
    return fail(ErrorCode::kInvalidArgument, where, "a key must consist of visible ASCII characters");
  return digest_of_key(key);
}

// One [[tenant]] with its place for messages.
class TenantReader {
 public:
  TenantReader(const toml::table& table, std::string_view where, const ReadVariable& variable)
      : table_(table), where_(where), variable_(variable) {}

  Result<TenantEntry> read() {
    RETURN_IF_ERROR(read_name());
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(kFields, key.str()) == kFields.end())
        return refuse(key.str(), "unknown key; expected one of: {}", fmt::join(kFields, ", "));
    }
    RETURN_IF_ERROR(read_keys());
    RETURN_IF_ERROR(read_limits());
    RETURN_IF_ERROR(read_bound());
    return std::move(entry_);
  }

 private:
  std::string at(std::string_view key) const {
    const toml::node* node = table_.get(key);
    const auto line = (node == nullptr ? table_.source() : node->source()).begin.line;
    const std::string& name = entry_.policy.name;
    return fmt::format("{}:{}: {}{}{}", where_, line, name.empty() ? "tenant" : name, ".", key);
  }
  template <class... Args>
  std::unexpected<Error> refuse(std::string_view key, fmt::format_string<Args...> format,
                                Args&&... args) const {
    return fail(ErrorCode::kInvalidArgument, at(key), format, std::forward<Args>(args)...);
  }

  Result<std::optional<std::string>> text(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) return refuse(key, "expected a string");
    return node->value<std::string>();
  }

  // A string or a list of strings.
  Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> list;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return list;
    if (const auto* array = node->as_array()) {
      for (const toml::node& item : *array) {
        if (!item.is_string()) return refuse(key, "expected strings");
        list.push_back(*item.value<std::string>());
      }
      return list;
    }
    if (!node->is_string()) return refuse(key, "expected a string or a list of strings");
    list.push_back(*node->value<std::string>());
    return list;
  }

  Result<void> number(std::string_view key, double low, double high, double& out) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= low && *value <= high))
      return refuse(key, "expected a number from {} to {}", low, high);
    out = *value;
    return {};
  }

  Result<void> integer(std::string_view key, int64_t low, int64_t high, int64_t& out) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->is_integer() ? node->value<int64_t>() : std::nullopt;
    if (!value || *value < low || *value > high)
      return refuse(key, "expected an integer from {} to {}", low, high);
    out = *value;
    return {};
  }

  Result<void> read_name() {
    ASSIGN_OR_RETURN(const auto name, text("name"));
    if (!name) return refuse("name", "is required");
    if (!is_name(*name)) return refuse("name", "expected 1 to {} of A-Za-z0-9._-", kMaxNameBytes);
    entry_.policy.name = *name;
    return {};
  }

  Result<void> read_keys() {
    ASSIGN_OR_RETURN(const auto keys, texts("keys"));
    for (const std::string& key : keys) {
      ASSIGN_OR_RETURN(entry_.keys.emplace_back(), digest_checked(key, at("keys")));
    }
    ASSIGN_OR_RETURN(const auto names, texts("key_env"));
    for (const std::string& name : names) {
      const auto key = variable_(name);
      if (!key) return refuse("key_env", "the environment has no variable {}", name);
      ASSIGN_OR_RETURN(entry_.keys.emplace_back(), digest_checked(*key, at("key_env")));
    }
    ASSIGN_OR_RETURN(const auto digests, texts("key_sha256"));
    for (const std::string& hex : digests) {
      auto digest = parse_key_digest(hex);
      if (!digest) return std::unexpected(digest.error().within(at("key_sha256")));
      entry_.keys.push_back(*digest);
    }
    if (entry_.keys.empty()) return refuse("keys", "no key: give keys, key_sha256 or key_env");
    return {};
  }

  Result<void> read_limits() {
    TenantPolicy& policy = entry_.policy;
    constexpr double kMinWeight = 1e-3, kMaxWeight = 1e3;
    RETURN_IF_ERROR(number("weight", kMinWeight, kMaxWeight, policy.weight));
    int64_t priority = 0;
    RETURN_IF_ERROR(integer("priority", -100, 100, priority));
    policy.priority = static_cast<int>(priority);
    RETURN_IF_ERROR(integer("requests_in_flight", 1, 1 << 20, policy.in_flight_limit));
    RETURN_IF_ERROR(number("requests_per_minute", 1, kMaxRate, policy.requests_per_minute));
    RETURN_IF_ERROR(number("tokens_per_minute", 1, kMaxRate, policy.tokens_per_minute));
    if (const toml::node* node = table_.get("admin")) {
      if (!node->is_boolean()) return refuse("admin", "expected true or false");
      policy.admin = *node->value<bool>();
    }
    return {};
  }

  Result<void> read_bound() {
    ASSIGN_OR_RETURN(const auto bound, text("ttft_bound"));
    if (bound) {
      const auto seconds = parse_seconds(*bound);
      if (!seconds) return std::unexpected(seconds.error().within(at("ttft_bound")));
      if (!(*seconds > 0)) return refuse("ttft_bound", "{} cannot hold", *bound);
      entry_.policy.ttft_bound_seconds = *seconds;
    }
    ASSIGN_OR_RETURN(const auto action, text("at_ttft_bound"));
    if (!action) return {};
    if (*action != "refuse" && *action != "queue")
      return refuse("at_ttft_bound", R"(expected "refuse" or "queue")");
    entry_.policy.refuse_late = *action == "refuse";
    return {};
  }

  const toml::table& table_;
  std::string_view where_;
  const ReadVariable& variable_;
  TenantEntry entry_;
};

Result<void> check_unique(const TenantTable& table, std::string_view where) {
  std::set<std::string> names;
  std::set<KeyDigest> keys;
  for (const TenantEntry& entry : table) {
    if (!names.insert(entry.policy.name).second)
      return fail(ErrorCode::kInvalidArgument, where, "two tenants are called \"{}\"", entry.policy.name);
    for (const KeyDigest& key : entry.keys) {
      if (!keys.insert(key).second)
        return fail(ErrorCode::kInvalidArgument, where, "a key of \"{}\" is given twice", entry.policy.name);
    }
  }
  if (keys.size() > kMaxKeys)
    return fail(ErrorCode::kInvalidArgument, where, "expected at most {} keys, found {}", kMaxKeys,
                keys.size());
  return {};
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT: nothing here changes the environment
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<TenantTable> parse_tenants(std::string_view text, std::string_view where,
                                  const ReadVariable& variable) {
  toml::table root;
  try {
    root = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}", where, error.source().begin.line), "{}",
                error.description());
  }
  for (const auto& [key, node] : root) {
    if (key.str() == "tenant") continue;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}:{}: {}", where, node.source().begin.line, key.str()),
                "unknown key; expected [[tenant]]");
  }
  const toml::node* node = root.get("tenant");
  if (node == nullptr || !node->is_array_of_tables())
    return fail(ErrorCode::kInvalidArgument, where, "expected at least one [[tenant]]");
  const toml::array& list = *node->as_array();
  if (list.size() > kMaxTenants)
    return fail(ErrorCode::kInvalidArgument, where, "expected at most {} tenants, found {}", kMaxTenants,
                list.size());
  TenantTable table;
  for (const toml::node& item : list) {
    ASSIGN_OR_RETURN(table.emplace_back(), TenantReader(*item.as_table(), where, variable).read());
  }
  RETURN_IF_ERROR(check_unique(table, where));
  return table;
}

Result<TenantFile> read_tenant_file(const std::filesystem::path& path, const ReadVariable& variable) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxFileBytes));
  TenantFile file;
  ASSIGN_OR_RETURN(file.tenants, parse_tenants(text, path.string(), variable));
  std::error_code error;
  const auto mode = std::filesystem::status(path, error).permissions();
  if (!error && (mode & std::filesystem::perms::others_read) != std::filesystem::perms::none)
    file.warnings.push_back(
        fmt::format("{} can be read by every user of this machine; chmod 600 it", path.string()));
  return file;
}

Result<TenantTable> tenant_of_key(std::string_view key, std::string_view where) {
  ASSIGN_OR_RETURN(const KeyDigest digest, digest_checked(key, where));
  TenantTable table;
  table.push_back({{.name = TenantDirectory::kAnonymous, .admin = true}, {digest}});
  return table;
}

}  // namespace assay
