// What this machine is. Failure: what cannot be read is absent. Thread safety: pure. Cost: milliseconds.
#pragma once

#include "records/machine_record.h"

namespace assay {

MachineRecord fingerprint();

}  // namespace assay
