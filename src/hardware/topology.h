// Packages, cores, caches and NUMA nodes of the machine, as hwloc finds them (a cgroup may hide some).
// Failure: kUnsupported when hwloc cannot read the machine. Thread safety: pure. Cost: milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace assay {

struct CacheLevel {
  int level = 0;            // 1, 2, 3
  uint64_t size_bytes = 0;  // of one instance; data or unified
  int line_bytes = 0;       // 0: not told by the system
  int instances = 0;
  int threads_sharing = 0;  // hardware threads that share one instance
};

struct NumaNode {
  int os_index = 0;
  uint64_t memory_bytes = 0;  // 0: not told by the system
  int threads = 0;
};

struct Topology {
  int packages = 0;  // 0: the system does not tell
  int cores = 0;
  int threads = 0;
  std::vector<CacheLevel> caches;  // level 1 first; empty when the system does not tell
  std::vector<NumaNode> numa_nodes;
};

Result<Topology> read_topology();

// CPUs that this process may use, by the system's numbers, in the order in which threads should be pinned: the
// first hardware thread of every core, then the second ones, and so on; cores of one package and NUMA node
// follow one another.
Result<std::vector<int>> cpus_by_core();

}  // namespace assay
