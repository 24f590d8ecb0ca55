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

// What the machine can do at most, measured by probe on the machine that the record names.
struct ArithmeticLimit {
  std::string isa;         // "avx512"
  std::string arithmetic;  // "f32", "bf16", "int8"
  int threads = 0;
  double operations_per_second = 0;  // a multiplication and an addition are two
};
BOOST_DESCRIBE_STRUCT(ArithmeticLimit, (), (isa, arithmetic, threads, operations_per_second))

struct ReadLimit {
  uint64_t bytes = 0;  // read again and again by all threads together
  int threads = 0;
  bool huge_pages = false;
  double bytes_per_second = 0;
};
BOOST_DESCRIBE_STRUCT(ReadLimit, (), (bytes, threads, huge_pages, bytes_per_second))

struct ForkJoinCost {
  int threads = 0;
  double seconds = 0;
};
BOOST_DESCRIBE_STRUCT(ForkJoinCost, (), (threads, seconds))

struct MachineLimitsRecord {
  static constexpr const char* kKind = "machine_limits";
  static constexpr int kVersion = 1;

  MachineRecord machine;
  std::vector<ArithmeticLimit> arithmetic;
  std::vector<ReadLimit> reads;
  std::vector<ForkJoinCost> fork_joins;
};
BOOST_DESCRIBE_STRUCT(MachineLimitsRecord, (), (machine, arithmetic, reads, fork_joins))

}  // namespace assay
