// Temperature, frequency, energy and load as Linux shows them to an unprivileged process. What cannot be read
// is absent with the reason beside it, never zero: virtual machines usually hide temperature and energy. GPU
// facts (through a run-time-loaded NVML) are not here yet. Thread safety: pure. Cost: a few small reads.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace assay {

// The value, or why there is none ("/sys/class/thermal: no CPU zone").
template <class T>
using Reading = std::expected<T, std::string>;

struct SensorReadings {
  Reading<double> cpu_celsius;            // the hottest thermal zone of a CPU
  Reading<double> cpu_hertz;              // mean current frequency over the CPUs
  Reading<double> package_energy_joules;  // RAPL counters summed over packages; wraps around
  Reading<double> load_1_minute;          // runnable threads, averaged over a minute
};

SensorReadings read_sensors();

}  // namespace assay
