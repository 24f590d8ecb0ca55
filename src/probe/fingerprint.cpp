#include "probe/fingerprint.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include "base/thread_pool.h"
#include "hardware/cpu.h"
#include "hardware/memory.h"
#include "hardware/topology.h"

namespace assay {
MachineRecord fingerprint() {
  MachineRecord record;
  const CpuInfo cpu = read_cpu();
  record.cpu_model = cpu.model;
  record.cpu_vendor = cpu.vendor;
  for (const std::string_view feature : feature_names(cpu.features))
    record.cpu_features.emplace_back(feature);
  record.cpus = available_cpus();
  if (const auto memory = read_memory()) record.memory_bytes = memory->total_bytes;
  if (const auto topology = read_topology()) {
    for (const CacheLevel& cache : topology->caches) {
      if (cache.level == 2) record.l2_bytes = cache.size_bytes;
      if (cache.level == 3) record.l3_bytes = cache.size_bytes;
    }
  }
  utsname system{};
  if (::uname(&system) == 0) record.kernel = fmt::format("{} {}", system.sysname, system.release);
  return record;
}

}  // namespace assay
