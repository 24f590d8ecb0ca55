// What assay sees of this machine. Uses only `hardware`.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "hardware/cpu.h"
#include "hardware/memory.h"
#include "hardware/sensors.h"
#include "hardware/topology.h"

int main() {
  const assay::CpuInfo cpu = assay::read_cpu();
  fmt::print("CPU       {} ({})\n", cpu.model.empty() ? "unknown model" : cpu.model, cpu.vendor);
  fmt::print("features  {}\n", fmt::join(assay::feature_names(cpu.features), " "));
  fmt::print("kernels   {}\n", assay::name(assay::best_isa(cpu.features)));
  if (const auto topology = assay::read_topology()) {
    fmt::print("topology  {} packages, {} cores, {} threads, {} NUMA nodes\n", topology->packages,
               topology->cores, topology->threads, topology->numa_nodes.size());
    for (const assay::CacheLevel& cache : topology->caches) {
      fmt::print("L{}        {} x {}\n", cache.level, cache.instances, assay::format_bytes(cache.size_bytes));
    }
  } else {
    fmt::print("topology  {}\n", topology.error().message());
  }
  if (const auto memory = assay::read_memory()) {
    fmt::print("memory    {} of {} available\n", assay::format_bytes(memory->available_bytes),
               assay::format_bytes(memory->total_bytes));
  } else {
    fmt::print("memory    {}\n", memory.error().message());
  }
  const auto celsius = assay::read_sensors().cpu_celsius;
  fmt::print("CPU heat  {}\n", celsius ? fmt::format("{:.0f} degrees Celsius", *celsius) : celsius.error());
  return 0;
}
