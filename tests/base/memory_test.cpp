#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace assay {
namespace {

TEST(Memory, available_is_positive_and_at_most_what_the_machine_has) {
  const auto total =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t available = available_memory_bytes();
  EXPECT_GT(available, 0U);
  EXPECT_LE(available, total);
}

}  // namespace
}  // namespace assay
