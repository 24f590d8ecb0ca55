#include "probe/fingerprint.h"

#include <sys/utsname.h>

#include <algorithm>
#include <atomic>

#include "base/aligned.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "hardware/cpu.h"
#include "hardware/memory.h"
#include "hardware/topology.h"

namespace assay {
namespace {

constexpr size_t kBandwidthBytes = size_t{512} << 20;
constexpr int kPasses = 5;

// Four independent sums: wide enough for the compiler to keep the loads in flight.
uint64_t sum_words(const uint64_t* words, size_t n) {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (size_t i = 0; i + 4 <= n; i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  return a + b + c + d;
}

}  // namespace

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

Result<double> measure_read_bandwidth(int n_threads) {
  ASSIGN_OR_RETURN(const AlignedBuffer buffer, AlignedBuffer::allocate(kBandwidthBytes));
  ThreadPool pool(n_threads);
  const int64_t n_parts = pool.size() * 4;
  const size_t part_words = kBandwidthBytes / sizeof(uint64_t) / static_cast<size_t>(n_parts);
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Stopwatch watch;
    pool.parallel_for(n_parts, [&](int64_t part) {
      sink += sum_words(buffer.as<uint64_t>() + static_cast<size_t>(part) * part_words, part_words);
    });
    const double bytes = static_cast<double>(part_words * sizeof(uint64_t)) * static_cast<double>(n_parts);
    best = std::max(best, bytes / watch.seconds());
  }
  return best + 0.0 * static_cast<double>(sink.load());
}

}  // namespace assay
