// How much memory this process may still use. Thread safe. Failure: unknown is reported as the largest
// number, so that a check against it passes. Cost: reads two small files, tens of microseconds.
#pragma once

#include <cstdint>

namespace assay {

// The smaller of what the system can give without swapping (MemAvailable) and what is left below the limits
// of this process's control groups (version 2).
uint64_t available_memory_bytes();

}  // namespace assay
