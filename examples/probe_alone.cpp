// What this machine is, and how fast its memory can be read.
#include <cstdio>

#include "probe/fingerprint.h"
#include "probe/read_rate.h"
#include "records/json_codec.h"

int main() {
  assay::MachineRecord machine = assay::fingerprint();
  if (const auto bandwidth = assay::measure_read_rate({})) machine.read_bytes_per_second = *bandwidth;
  std::fputs(assay::record_to_json(machine).c_str(), stdout);
  return 0;
}
