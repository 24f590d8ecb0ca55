// How much memory there is, and how much a new process could take without pushing others out.
// Source: proc(5) for /proc/meminfo; cgroup v2 for limits of a container. Thread safety: pure. Cost: one
// small read each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace assay {

struct MemoryInfo {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;                // MemAvailable, lowered to what a cgroup limit leaves
  std::optional<uint64_t> cgroup_limit_bytes;  // absent: no limit, or not readable
  std::optional<uint64_t> huge_page_bytes;     // size of one explicit huge page
  std::optional<uint64_t> huge_pages_free;     // number of reserved ones that are free
  // "always", "madvise" or "never"; empty when it cannot be read.
  std::string_view transparent_huge_pages;
};

// kIo when /proc/meminfo cannot be read, kCorrupt when it lacks MemTotal or MemAvailable.
Result<MemoryInfo> read_memory();

// The parser behind it, for text in the form of /proc/meminfo.
Result<MemoryInfo> parse_meminfo(std::string_view text);

}  // namespace assay
