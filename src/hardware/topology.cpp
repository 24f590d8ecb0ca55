#include "hardware/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "base/thread_pool.h"

namespace assay {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int n = hwloc_get_nbobjs_by_type(topology, type);
  return n > 0 ? n : 0;
}

int threads_of(hwloc_obj_t object) {
  return object->cpuset == nullptr ? 0 : hwloc_bitmap_weight(object->cpuset);
}

void read_caches(hwloc_topology_t topology, Topology& out) {
  constexpr hwloc_obj_type_t kLevels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                          HWLOC_OBJ_L4CACHE};
  int level = 0;
  for (const hwloc_obj_type_t type : kLevels) {
    ++level;
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology, type, 0);
    if (first == nullptr) continue;
    out.caches.push_back({.level = level,
                          .size_bytes = first->attr->cache.size,
                          .line_bytes = static_cast<int>(first->attr->cache.linesize),
                          .instances = count(topology, type),
                          .threads_sharing = threads_of(first)});
  }
}

void read_numa(hwloc_topology_t topology, Topology& out) {
  const int n = count(topology, HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < n; ++i) {
    const hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    if (node == nullptr) continue;
    out.numa_nodes.push_back({.os_index = static_cast<int>(node->os_index),
                              .memory_bytes = node->attr->numanode.local_memory,
                              .threads = threads_of(node)});
  }
}

Result<Handle> load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(ErrorCode::kUnsupported, "hwloc", "cannot be initialised");
  Handle handle(raw);
  if (hwloc_topology_load(raw) != 0) {
    return fail(ErrorCode::kUnsupported, "hwloc", "cannot read this machine; is /sys mounted?");
  }
  return handle;
}

}  // namespace

Result<Topology> read_topology() {
  ASSIGN_OR_RETURN(const Handle handle, load());
  hwloc_topology_t raw = handle.get();
  Topology out;
  out.packages = count(raw, HWLOC_OBJ_PACKAGE);
  out.cores = count(raw, HWLOC_OBJ_CORE);
  out.threads = count(raw, HWLOC_OBJ_PU);
  read_caches(raw, out);
  read_numa(raw, out);
  return out;
}

Result<std::vector<int>> cpus_by_core() {
  ASSIGN_OR_RETURN(const Handle handle, load());
  const std::vector<int> allowed = available_cpu_numbers();
  // Logical order is that of the tree: package by package, core by core.
  std::vector<std::vector<int>> cores;
  hwloc_obj_t last_core = nullptr;
  for (int i = 0; i < count(handle.get(), HWLOC_OBJ_PU); ++i) {
    const hwloc_obj_t thread = hwloc_get_obj_by_type(handle.get(), HWLOC_OBJ_PU, static_cast<unsigned>(i));
    if (thread == nullptr || !std::ranges::binary_search(allowed, static_cast<int>(thread->os_index))) continue;
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(handle.get(), HWLOC_OBJ_CORE, thread);
    if (core == nullptr || core != last_core) cores.emplace_back();
    last_core = core;
    cores.back().push_back(static_cast<int>(thread->os_index));
  }
  std::vector<int> cpus;
  size_t most = 0;
  for (const std::vector<int>& core : cores) most = std::max(most, core.size());
  for (size_t place = 0; place < most; ++place) {
    for (const std::vector<int>& core : cores)
      if (place < core.size()) cpus.push_back(core[place]);
  }
  if (cpus.empty()) return fail(ErrorCode::kUnsupported, "hwloc", "knows none of the CPUs that may be used");
  return cpus;
}

}  // namespace assay
