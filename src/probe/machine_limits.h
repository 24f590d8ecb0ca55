// All limits of this machine that kernels are held against, in one record: arithmetic by instruction set,
// reads by size, the cost of a fork and join, each with one thread and with all.
// Failure: what this machine cannot do is left out; memory that cannot be had is an error. Thread safety:
// measure one thing at a time, on a machine that does nothing else. Cost: about 5 s, most_bytes of memory.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "records/machine_record.h"

namespace assay {

struct MachineLimitsOptions {
  int n_threads = 0;  // 0: every CPU available
  uint64_t most_bytes = uint64_t{1} << 30;
};

// Reads of 64 KiB, 256 KiB, ... up to most_bytes with huge pages, and of the largest size without.
Result<MachineLimitsRecord> measure_machine_limits(const MachineLimitsOptions& options = {});

}  // namespace assay
