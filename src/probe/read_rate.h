// How fast this machine reads memory, by how much of it is read again and again: the smaller, the nearer the
// cache that it comes from. The limit of everything that reads each weight or key once.
// Failure: kResourceExhausted when the memory cannot be had. Thread safety: measure one thing at a time.
// Cost: about 0.1 s a call after the memory is written once; that much memory.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace assay {

struct ReadTest {
  size_t bytes = size_t{512} << 20;  // of all threads together, each reads its own part; at least 4 KiB a thread
  int n_threads = 0;                 // 0: every CPU available
  bool huge_pages = true;            // asked for, or asked against (madvise)
};

// Bytes per second, the best of five runs. Reads with the widest loads that the CPU has.
Result<double> measure_read_rate(const ReadTest& test);

// Seconds of one fork and join of n_threads in which every thread takes part, less its work: the median of
// 2000.
double measure_fork_join(int n_threads);

}  // namespace assay
