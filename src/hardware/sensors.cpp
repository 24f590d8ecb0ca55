#include "hardware/sensors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace assay {
namespace {

namespace fs = std::filesystem;

// Directories of `parent` whose name starts with `prefix`; empty when it cannot be listed.
std::vector<fs::path> children(const char* parent, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool read_number(const fs::path& path, double& value) {
  std::ifstream file(path);
  return static_cast<bool>(file >> value);
}

std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_cpu_zone(const std::string& type) {
  return type.find("pkg") != std::string::npos || type.find("cpu") != std::string::npos ||
         type.find("CPU") != std::string::npos;
}

Reading<double> read_temperature() {
  double hottest = 0;
  bool found = false;
  for (const fs::path& zone : children("/sys/class/thermal", "thermal_zone")) {
    double milli_celsius = 0;
    if (!is_cpu_zone(read_line(zone / "type")) || !read_number(zone / "temp", milli_celsius)) continue;
    hottest = found ? std::max(hottest, milli_celsius / 1000) : milli_celsius / 1000;
    found = true;
  }
  if (!found) return std::unexpected("/sys/class/thermal: no CPU zone can be read");
  return hottest;
}

Reading<double> read_frequency() {
  double sum = 0;
  int n = 0;
  for (const fs::path& policy : children("/sys/devices/system/cpu/cpufreq", "policy")) {
    double kilohertz = 0;
    if (!read_number(policy / "scaling_cur_freq", kilohertz)) continue;
    sum += kilohertz * 1000;
    ++n;
  }
  if (n == 0) return std::unexpected("/sys/devices/system/cpu/cpufreq: no policy can be read");
  return sum / n;
}

Reading<double> read_energy() {
  double joules = 0;
  int n = 0;
  for (const fs::path& domain : children("/sys/class/powercap", "intel-rapl:")) {
    // "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it.
    const std::string name = domain.filename().string();
    double microjoules = 0;
    if (std::count(name.begin(), name.end(), ':') != 1 || !read_number(domain / "energy_uj", microjoules))
      continue;
    joules += microjoules / 1e6;
    ++n;
  }
  if (n == 0) return std::unexpected("/sys/class/powercap: no package counter can be read");
  return joules;
}

Reading<double> read_load() {
  double load = 0;
  if (!read_number("/proc/loadavg", load)) return std::unexpected("/proc/loadavg: cannot be read");
  return load;
}

}  // namespace

SensorReadings read_sensors() {
  return {.cpu_celsius = read_temperature(),
          .cpu_hertz = read_frequency(),
          .package_energy_joules = read_energy(),
          .load_1_minute = read_load()};
}

}  // namespace assay
