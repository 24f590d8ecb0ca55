// The machine a measurement ran on. Filled by probe; what could not be read is absent, never zero.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct MachineRecord {
  static constexpr const char* kKind = "machine";
  static constexpr int kVersion = 1;

  std::string cpu_model;
  std::string cpu_vendor;
  std::vector<std::string> cpu_features;  // those that select kernels: avx2, fma, avx512_vnni, ...
  int cpus = 0;                           // usable by this process
  std::optional<uint64_t> l2_bytes;       // per core
  std::optional<uint64_t> l3_bytes;
  uint64_t memory_bytes = 0;
  std::string kernel;  // uname release
  std::optional<std::string> hypervisor;
  std::optional<double> read_bytes_per_second;  // measured, all threads, from memory
};
BOOST_DESCRIBE_STRUCT(MachineRecord, (),
                      (cpu_model, cpu_vendor, cpu_features, cpus, l2_bytes, l3_bytes, memory_bytes, kernel,
                       hypervisor, read_bytes_per_second))

}  // namespace assay
