#include "hardware/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

namespace assay {
namespace {

// Files of /proc and /sys have no size to map; they are small by nature, and read up to a bound.
std::optional<std::string> read_system_file(const char* path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text(64 * 1024, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// "Name:   123 kB" -> 123.
std::optional<uint64_t> field(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return parse_number(line.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<uint64_t> kib_field(std::string_view text, std::string_view name) {
  const auto value = field(text, name);
  if (!value || *value > (~uint64_t{0} >> 10)) return std::nullopt;
  return *value << 10;
}

std::string_view read_transparent_huge_pages() {
  const auto text = read_system_file("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!text) return {};
  for (const std::string_view mode : {"always", "madvise", "never"}) {
    if (text->find("[" + std::string(mode) + "]") != std::string::npos) return mode;
  }
  return {};
}

// The limit of the group this process sees as its root ("max" is none).
void apply_cgroup_limit(MemoryInfo& info) {
  const auto limit_text = read_system_file("/sys/fs/cgroup/memory.max");
  if (!limit_text) return;
  info.cgroup_limit_bytes = parse_number(*limit_text);
  if (!info.cgroup_limit_bytes) return;
  const auto used_text = read_system_file("/sys/fs/cgroup/memory.current");
  const uint64_t used = used_text ? parse_number(*used_text).value_or(0) : 0;
  const uint64_t left = *info.cgroup_limit_bytes > used ? *info.cgroup_limit_bytes - used : 0;
  info.available_bytes = std::min(info.available_bytes, left);
}

}  // namespace

Result<MemoryInfo> parse_meminfo(std::string_view text) {
  const auto total = kib_field(text, "MemTotal");
  const auto available = kib_field(text, "MemAvailable");
  if (!total || !available) {
    return fail(ErrorCode::kCorrupt, "/proc/meminfo",
                "expected lines MemTotal and MemAvailable in kB, found {}",
                total ? "no MemAvailable" : "no MemTotal");
  }
  MemoryInfo info;
  info.total_bytes = *total;
  info.available_bytes = *available;
  info.huge_page_bytes = kib_field(text, "Hugepagesize");
  info.huge_pages_free = field(text, "HugePages_Free");
  return info;
}

Result<MemoryInfo> read_memory() {
  const auto text = read_system_file("/proc/meminfo");
  if (!text) return fail(ErrorCode::kIo, "/proc/meminfo", "cannot be read; is /proc mounted?");
  ASSIGN_OR_RETURN(MemoryInfo info, parse_meminfo(*text));
  info.transparent_huge_pages = read_transparent_huge_pages();
  apply_cgroup_limit(info);
  return info;
}

}  // namespace assay
