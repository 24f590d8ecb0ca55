#include "records/contract.h"

#include <toml++/toml.h>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "base/file.h"
#include "base/units.h"

namespace assay {
namespace {

constexpr uint64_t kMaxContractBytes = 1 << 20;

// One table of the contract, with the file's name for messages.
class Section {
 public:
  Section(const toml::table* table, std::string_view where, std::string name)
      : table_(table), where_(where), name_(std::move(name)) {}

  bool present() const { return table_ != nullptr; }

  // "contract.toml:7: quality.max_mean_kl"
  std::string at(std::string_view key) const {
    const toml::node* node = find(key);
    const std::string full = name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
    return node == nullptr ? fmt::format("{}: {}", where_, full)
                           : fmt::format("{}:{}: {}", where_, node->source().begin.line, full);
  }

  const toml::node* find(std::string_view key) const {
    return table_ == nullptr ? nullptr : table_->get(key);
  }

  Result<void> allow(std::initializer_list<std::string_view> keys) const {
    if (table_ == nullptr) return {};
    for (const auto& [key, node] : *table_) {
      bool known = false;
      std::string list;
      for (const std::string_view allowed : keys) {
        known = known || key.str() == allowed;
        list += (list.empty() ? "" : ", ") + std::string(allowed);
      }
      if (!known) {
        return fail(ErrorCode::kInvalidArgument, at(key.str()), "unknown key; expected one of: {}", list);
      }
    }
    return {};
  }

  // A number within [low, high].
  Result<void> number(std::string_view key, double low, double high, std::optional<double>& out) const {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value) return fail(ErrorCode::kInvalidArgument, at(key), "expected a number");
    if (!(*value >= low && *value <= high)) {
      return fail(ErrorCode::kInvalidArgument, at(key), "{} cannot hold: expected a number from {} to {}",
                  *value, low, high);
    }
    out = *value;
    return {};
  }

  Result<void> integer(std::string_view key, int64_t low, int64_t high, int& out) const {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    const std::optional<int64_t> value = node->is_integer() ? node->value<int64_t>() : std::nullopt;
    if (!value) return fail(ErrorCode::kInvalidArgument, at(key), "expected an integer");
    if (*value < low || *value > high) {
      return fail(ErrorCode::kInvalidArgument, at(key), "expected an integer from {} to {}, found {}", low,
                  high, *value);
    }
    out = static_cast<int>(*value);
    return {};
  }

  Result<void> text(std::string_view key, std::string& out) const {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    const auto value = node->is_string() ? node->value<std::string>() : std::nullopt;
    if (!value) return fail(ErrorCode::kInvalidArgument, at(key), "expected a string");
    out = *value;
    return {};
  }

  // A duration such as "500 ms"; zero cannot hold.
  Result<void> duration(std::string_view key, std::optional<double>& out) const {
    if (find(key) == nullptr) return {};
    std::string written;
    if (!find(key)->is_string()) {
      return fail(ErrorCode::kInvalidArgument, at(key), "expected a string with a unit, such as \"500 ms\"");
    }
    RETURN_IF_ERROR(text(key, written));
    auto seconds = parse_seconds(written);
    if (!seconds) return std::unexpected(seconds.error().within(at(key)));
    if (!(*seconds > 0)) return fail(ErrorCode::kInvalidArgument, at(key), "{} cannot hold", written);
    out = *seconds;
    return {};
  }

 private:
  const toml::table* table_;
  std::string_view where_;
  std::string name_;
};

Result<Section> section(const toml::table& root, std::string_view where, std::string_view name) {
  const toml::node* node = root.get(name);
  if (node != nullptr && !node->is_table()) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}", where, node->source().begin.line),
                "{} must be a table: [{}]", name, name);
  }
  return Section(node == nullptr ? nullptr : node->as_table(), where, std::string(name));
}

Result<void> read_quality(const Section& table, QualityBounds& bounds) {
  constexpr double kMaxKl = 1000;
  RETURN_IF_ERROR(table.number("max_mean_kl", 0, kMaxKl, bounds.max_mean_kl));
  RETURN_IF_ERROR(table.number("max_p999_kl", 0, kMaxKl, bounds.max_p999_kl));
  RETURN_IF_ERROR(table.number("min_top1", 0, 1, bounds.min_top1));
  return table.number("max_perplexity_increase", 0, kMaxKl, bounds.max_perplexity_increase);
}

Result<void> read_search(const Section& table, Search& search) {
  RETURN_IF_ERROR(table.allow({"candidates", "choose", "seed"}));
  RETURN_IF_ERROR(table.text("choose", search.choose));
  if (search.choose != "time" && search.choose != "memory") {
    return fail(ErrorCode::kInvalidArgument, table.at("choose"),
                "expected \"time\" or \"memory\", found \"{}\"", search.choose);
  }
  int seed = 1;
  RETURN_IF_ERROR(table.integer("seed", 0, INT32_MAX, seed));
  search.seed = static_cast<uint64_t>(seed);
  const toml::node* node = table.find("candidates");
  if (node == nullptr) return {};
  if (!node->is_array() || node->as_array()->empty()) {
    return fail(ErrorCode::kInvalidArgument, table.at("candidates"), "expected a list of precisions");
  }
  for (const toml::node& item : *node->as_array()) {
    const auto written = item.is_string() ? item.value<std::string>() : std::nullopt;
    if (!written) return fail(ErrorCode::kInvalidArgument, table.at("candidates"), "expected strings");
    auto precision = parse_precision(*written);
    if (!precision) return std::unexpected(precision.error().within(table.at("candidates")));
    search.candidates.push_back(*precision);
  }
  return {};
}

// A bound that is looser (or equal) under pressure than in the contract.
Result<void> check_pressure(const Section& table, const QualityBounds& contract,
                            const QualityBounds& pressure) {
  const auto check = [&](std::string_view key, std::optional<double> normal, std::optional<double> pressed,
                         bool larger_is_looser) -> Result<void> {
    if (normal && pressed && (larger_is_looser ? *pressed < *normal : *pressed > *normal)) {
      return fail(ErrorCode::kInvalidArgument, table.at(key), "{} is tighter than the contract's own {}",
                  *pressed, *normal);
    }
    return {};
  };
  RETURN_IF_ERROR(check("max_mean_kl", contract.max_mean_kl, pressure.max_mean_kl, true));
  RETURN_IF_ERROR(check("max_p999_kl", contract.max_p999_kl, pressure.max_p999_kl, true));
  RETURN_IF_ERROR(check("min_top1", contract.min_top1, pressure.min_top1, false));
  return check("max_perplexity_increase", contract.max_perplexity_increase, pressure.max_perplexity_increase,
               true);
}

Result<void> read_machine_bounds(const toml::table& root, std::string_view where, Contract& contract) {
  ASSIGN_OR_RETURN(const Section latency, section(root, where, "latency"));
  RETURN_IF_ERROR(latency.allow({"ttft", "tpot", "e2e"}));
  RETURN_IF_ERROR(latency.duration("ttft", contract.latency.ttft_seconds));
  RETURN_IF_ERROR(latency.duration("tpot", contract.latency.tpot_seconds));
  RETURN_IF_ERROR(latency.duration("e2e", contract.latency.e2e_seconds));

  ASSIGN_OR_RETURN(const Section throughput, section(root, where, "throughput"));
  constexpr double kMaxRate = 1e12;
  RETURN_IF_ERROR(throughput.allow({"prefill", "decode"}));
  RETURN_IF_ERROR(throughput.number("prefill", 0, kMaxRate, contract.throughput.prefill_tokens_per_second));
  RETURN_IF_ERROR(throughput.number("decode", 0, kMaxRate, contract.throughput.decode_tokens_per_second));

  ASSIGN_OR_RETURN(const Section memory, section(root, where, "memory"));
  RETURN_IF_ERROR(memory.allow({"resident"}));
  std::string written;
  RETURN_IF_ERROR(memory.text("resident", written));
  if (memory.find("resident") != nullptr) {
    auto bytes = parse_bytes(written);
    if (!bytes) return std::unexpected(bytes.error().within(memory.at("resident")));
    if (*bytes == 0)
      return fail(ErrorCode::kInvalidArgument, memory.at("resident"), "{} cannot hold", written);
    contract.memory.resident_bytes = *bytes;
  }
  return {};
}

// Bounds that contradict each other whatever the machine does.
Result<void> check_together(const Section& root, const Contract& contract) {
  const LatencyBounds& latency = contract.latency;
  if (latency.e2e_seconds && latency.ttft_seconds && *latency.ttft_seconds > *latency.e2e_seconds) {
    return fail(ErrorCode::kInvalidArgument, root.at("latency"), "ttft ({}) is longer than e2e ({})",
                format_seconds(*latency.ttft_seconds), format_seconds(*latency.e2e_seconds));
  }
  return {};
}

}  // namespace

Result<Contract> parse_contract(std::string_view text, std::string_view where) {
  if (text.size() > kMaxContractBytes) {
    return fail(ErrorCode::kInvalidArgument, where, "is larger than {}", format_bytes(kMaxContractBytes));
  }
  toml::table table;
  try {
    table = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}", where, error.source().begin.line), "{}",
                error.description());
  }
  Contract contract;
  const Section root(&table, where, "");
  RETURN_IF_ERROR(
      root.allow({"model", "quality", "latency", "throughput", "memory", "workload", "pressure", "search"}));
  RETURN_IF_ERROR(root.text("model", contract.model));

  ASSIGN_OR_RETURN(const Section quality, section(table, where, "quality"));
  RETURN_IF_ERROR(
      quality.allow({"max_mean_kl", "max_p999_kl", "min_top1", "max_perplexity_increase", "text"}));
  RETURN_IF_ERROR(read_quality(quality, contract.quality));
  if (quality.find("text") != nullptr) RETURN_IF_ERROR(quality.text("text", contract.text.emplace()));

  RETURN_IF_ERROR(read_machine_bounds(table, where, contract));

  ASSIGN_OR_RETURN(const Section workload, section(table, where, "workload"));
  RETURN_IF_ERROR(workload.allow({"prompt_tokens", "output_tokens", "concurrency"}));
  RETURN_IF_ERROR(workload.integer("prompt_tokens", 1, 1 << 20, contract.workload.prompt_tokens));
  RETURN_IF_ERROR(workload.integer("output_tokens", 1, 1 << 20, contract.workload.output_tokens));
  RETURN_IF_ERROR(workload.integer("concurrency", 1, 4096, contract.workload.concurrency));

  ASSIGN_OR_RETURN(const Section pressure, section(table, where, "pressure"));
  if (pressure.present()) {
    RETURN_IF_ERROR(pressure.allow({"max_mean_kl", "max_p999_kl", "min_top1", "max_perplexity_increase"}));
    RETURN_IF_ERROR(read_quality(pressure, contract.pressure.emplace()));
    RETURN_IF_ERROR(check_pressure(pressure, contract.quality, *contract.pressure));
  }
  ASSIGN_OR_RETURN(const Section search, section(table, where, "search"));
  RETURN_IF_ERROR(read_search(search, contract.search));
  RETURN_IF_ERROR(check_together(root, contract));
  return contract;
}

Result<Contract> read_contract(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxContractBytes));
  return parse_contract(text, path.string());
}

}  // namespace assay
