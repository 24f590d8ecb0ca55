// Memory, topology and sensors of this machine, held against other sources of the same facts.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/thread_pool.h"
#include "hardware/memory.h"
#include "hardware/sensors.h"
#include "hardware/topology.h"

namespace assay {
namespace {

TEST(ReadMemory, total_is_what_sysinfo_says) {
  struct sysinfo info = {};
  ASSERT_EQ(::sysinfo(&info), 0);
  const auto memory = read_memory();
  ASSERT_TRUE(memory.has_value()) << memory.error().message();
  const uint64_t total = uint64_t{info.totalram} * info.mem_unit;
  EXPECT_NEAR(static_cast<double>(memory->total_bytes), static_cast<double>(total), 4096.0);
  EXPECT_GT(memory->available_bytes, 0U);
  EXPECT_LE(memory->available_bytes, memory->total_bytes);
}

TEST(ParseMeminfo, reads_fields_by_their_whole_name) {
  const auto memory = parse_meminfo(
      "MemTotal:       1000 kB\nMemTotalX: 5 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\nHugePages_Free:     "
      "   3\n"
      "Hugepagesize:       2048 kB");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total_bytes, 1024000U);
  EXPECT_EQ(memory->available_bytes, 614400U);
  EXPECT_EQ(memory->huge_page_bytes, 2U << 20);
  EXPECT_EQ(memory->huge_pages_free, 3U);
}

TEST(ParseMeminfo, what_is_absent_is_absent_not_zero) {
  const auto memory = parse_meminfo("MemTotal: 1 kB\nMemAvailable: 1 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_FALSE(memory->huge_page_bytes.has_value());
  EXPECT_FALSE(memory->huge_pages_free.has_value());
}

TEST(ParseMeminfo, broken_text_is_corrupt) {
  for (const char* text : {"", "MemTotal", "MemTotal:\n", "MemTotal: x kB\nMemAvailable: 1 kB",
                           "MemTotal: 5 kB\n", "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB",
                           "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB"}) {
    const auto memory = parse_meminfo(text);
    ASSERT_FALSE(memory.has_value()) << text;
    EXPECT_EQ(memory.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ReadTopology, threads_are_those_of_the_affinity_mask) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology.has_value()) << topology.error().message();
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_GE(topology->threads, CPU_COUNT(&set));  // hwloc sees the machine, the mask may be a part of it
  EXPECT_LE(topology->cores, topology->threads);
  for (size_t i = 0; i < topology->caches.size(); ++i) {
    const CacheLevel& cache = topology->caches[i];
    EXPECT_GT(cache.size_bytes, 0U);
    EXPECT_GT(cache.instances, 0);
    EXPECT_LE(cache.threads_sharing, topology->threads);
    if (i > 0) {
      EXPECT_GT(cache.level, topology->caches[i - 1].level);
    }
  }
  EXPECT_GE(topology->numa_nodes.size(), 1U);
}

TEST(CpusByCore, are_the_available_ones_and_start_with_one_of_every_core) {
  const auto cpus = cpus_by_core();
  ASSERT_TRUE(cpus) << cpus.error().message();
  std::vector<int> sorted = *cpus;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, available_cpu_numbers());
  const auto topology = read_topology();
  ASSERT_TRUE(topology);
  if (static_cast<int>(cpus->size()) != topology->threads) GTEST_SKIP() << "some CPUs are not ours";
  // Siblings as the kernel lists them: of the first `cores` CPUs no two share a core.
  std::set<std::string> cores;
  for (int i = 0; i < topology->cores; ++i) {
    const auto siblings = read_file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list",
                                                (*cpus)[static_cast<size_t>(i)]));
    if (!siblings) GTEST_SKIP() << siblings.error().message();
    EXPECT_TRUE(cores.insert(*siblings).second) << *siblings;
  }
}

TEST(ReadSensors, absent_readings_say_why) {
  const SensorReadings readings = read_sensors();
  for (const Reading<double>* reading :
       {&readings.cpu_celsius, &readings.cpu_hertz, &readings.package_energy_joules}) {
    if (reading->has_value()) {
      EXPECT_GT(**reading, 0);
    } else {
      EXPECT_NE(reading->error().find("/sys/"), std::string::npos);
    }
  }
  if (readings.load_1_minute) {
    EXPECT_GE(*readings.load_1_minute, 0);
  }
}

}  // namespace
}  // namespace assay
