// What this machine is, and the one limit that decode speed depends on: how fast its memory can be read.
// Failure: what cannot be read is absent. Thread safety: measure one thing at a time. Cost: fingerprint()
// milliseconds; measure_read_bandwidth() about 0.3 s and 512 MiB.
#pragma once

#include "base/error.h"
#include "records/machine_record.h"

namespace assay {

MachineRecord fingerprint();

// Bytes per second that n_threads read together from a buffer too large for the caches; the best of five
// passes.
Result<double> measure_read_bandwidth(int n_threads);

}  // namespace assay
