#include "probe/fingerprint.h"

#include <gtest/gtest.h>

#include <thread>

#include "records/json_codec.h"

namespace assay {
namespace {

TEST(Fingerprint, agrees_with_the_standard_library_and_survives_json) {
  const MachineRecord machine = fingerprint();
  EXPECT_GE(machine.cpus, 1);
  EXPECT_LE(machine.cpus, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(machine.memory_bytes, uint64_t{64} << 20);
  EXPECT_FALSE(machine.kernel.empty());
  const std::string text = record_to_json(machine);
  const auto read = record_from_json<MachineRecord>(text, "machine.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(record_to_json(*read), text);
}

}  // namespace
}  // namespace assay
