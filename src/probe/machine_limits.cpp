#include "probe/machine_limits.h"

#include <vector>

#include "base/thread_pool.h"
#include "probe/arithmetic_peak.h"
#include "probe/fingerprint.h"
#include "probe/read_rate.h"

namespace assay {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{64} << 10;

void measure_arithmetic(int n_threads, std::vector<ArithmeticLimit>& limits) {
  for (int isa = 0; isa < static_cast<int>(Isa::kCount); ++isa) {
    for (int kind = 0; kind < static_cast<int>(Arithmetic::kCount); ++kind) {
      const auto rate =
          measure_arithmetic_peak(static_cast<Isa>(isa), static_cast<Arithmetic>(kind), n_threads);
      if (!rate) continue;  // this CPU cannot
      limits.push_back({.isa = std::string(name(static_cast<Isa>(isa))),
                        .arithmetic = std::string(name(static_cast<Arithmetic>(kind))),
                        .threads = n_threads,
                        .operations_per_second = *rate});
    }
  }
}

Result<void> measure_reads(int n_threads, uint64_t most_bytes, std::vector<ReadLimit>& limits) {
  const auto add = [&](uint64_t bytes, bool huge_pages) -> Result<void> {
    ASSIGN_OR_RETURN(const double rate, measure_read_rate({.bytes = static_cast<size_t>(bytes),
                                                           .n_threads = n_threads,
                                                           .huge_pages = huge_pages}));
    limits.push_back(
        {.bytes = bytes, .threads = n_threads, .huge_pages = huge_pages, .bytes_per_second = rate});
    return {};
  };
  uint64_t largest = kLeastBytes;
  for (uint64_t bytes = kLeastBytes; bytes <= most_bytes; bytes *= 4) {
    RETURN_IF_ERROR(add(bytes, true));
    largest = bytes;
  }
  return add(largest, false);
}

}  // namespace

Result<MachineLimitsRecord> measure_machine_limits(const MachineLimitsOptions& options) {
  MachineLimitsRecord record;
  record.machine = fingerprint();
  const int all = options.n_threads > 0 ? options.n_threads : available_cpus();
  std::vector<int> threads{1};
  if (all > 1) threads.push_back(all);
  for (const int n : threads) {
    measure_arithmetic(n, record.arithmetic);
    RETURN_IF_ERROR(measure_reads(n, options.most_bytes, record.reads));
    record.fork_joins.push_back({.threads = n, .seconds = measure_fork_join(n)});
  }
  return record;
}

}  // namespace assay
