#include "base/memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace assay {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

// Files of /proc and /sys report no size, so they are read as streams. `field` is the first word of the
// wanted line; empty for a file that is one number.
std::optional<uint64_t> read_number(const std::filesystem::path& path, std::string_view field) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (field.empty()) return file >> value ? std::optional(value) : std::nullopt;
  for (std::string word; file >> word;) {
    if (word == field) return file >> value ? std::optional(value) : std::nullopt;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

uint64_t system_available() {
  const auto kib = read_number("/proc/meminfo", "MemAvailable:");
  return kib ? *kib * 1024 : kUnknown;
}

uint64_t available_in(const std::filesystem::path& group) {
  const auto limit = read_number(group / "memory.max", "");  // "max", not a number, when unlimited
  const auto used = read_number(group / "memory.current", "");
  if (!limit || !used) return kUnknown;
  // The page cache is counted as used but is given back on demand.
  const uint64_t cache = read_number(group / "memory.stat", "inactive_file").value_or(0);
  const uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

// Limits hold at every level from the process's own group up to the root.
uint64_t control_group_available() {
  std::ifstream membership("/proc/self/cgroup");
  std::string line;
  while (std::getline(membership, line) && !line.starts_with("0::/")) {
  }
  if (!line.starts_with("0::/")) return kUnknown;
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path group = line.substr(4);
  uint64_t available = available_in(root / group);
  while (!group.empty()) {
    group = group.parent_path();
    available = std::min(available, available_in(root / group));
  }
  return available;
}

}  // namespace

uint64_t available_memory_bytes() {
  return std::min(system_available(), control_group_available());
}

}  // namespace assay
