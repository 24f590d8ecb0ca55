// Plausibility only: how fast a machine is cannot be tested, but units, counts and orders of magnitude can.
#include "probe/machine_limits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "probe/arithmetic_peak.h"
#include "probe/read_rate.h"
#include "records/json_codec.h"

namespace assay {
namespace {

TEST(ArithmeticPeak, rates_lie_between_any_slow_and_any_fast_core) {
  for (int isa = 0; isa < static_cast<int>(Isa::kCount); ++isa) {
    for (const Arithmetic kind : {Arithmetic::kF32, Arithmetic::kBf16, Arithmetic::kInt8}) {
      const auto rate = measure_arithmetic_peak(static_cast<Isa>(isa), kind, 1);
      if (!rate) {
        EXPECT_EQ(rate.error().code, ErrorCode::kUnsupported);
        continue;
      }
      EXPECT_GT(*rate, 1e8) << isa << name(kind);
      EXPECT_LT(*rate, 4e12) << isa << name(kind);  // 2 units x 64 lanes x 2 operations at 8 GHz, doubled
    }
  }
}

TEST(ArithmeticPeak, is_measured_for_what_the_cpu_has) {
  const CpuFeatures features = read_cpu().features;
  for (int i = 0; i < static_cast<int>(Isa::kCount); ++i) {
    const auto isa = static_cast<Isa>(i);
#if defined(__x86_64__)
    EXPECT_EQ(measure_arithmetic_peak(isa, Arithmetic::kF32, 1).has_value(), supports(features, isa));
    EXPECT_EQ(measure_arithmetic_peak(isa, Arithmetic::kBf16, 1).has_value(),
              isa == Isa::kAvx512 && supports(features, isa) && features.avx512_bf16);
#else
    EXPECT_FALSE(measure_arithmetic_peak(isa, Arithmetic::kF32, 1).has_value());
#endif
  }
}

// Four times the lanes of the same registers, so the loop cannot be slower, whatever the machine does beside.
TEST(ArithmeticPeak, int8_beats_f32_where_one_instruction_does_four_times_as_much) {
  const auto f32 = measure_arithmetic_peak(Isa::kAvx512, Arithmetic::kF32, 1);
  const auto int8 = measure_arithmetic_peak(Isa::kAvx512, Arithmetic::kInt8, 1);
  if (!f32 || !int8) GTEST_SKIP() << "no AVX-512 with VNNI";
  EXPECT_GT(*int8, *f32);
}

TEST(ReadRate, is_a_plausible_rate_at_every_size_and_page) {
  for (const size_t bytes : {size_t{1}, size_t{64} << 10, size_t{3} << 20, size_t{32} << 20}) {
    for (const bool huge : {false, true}) {
      const auto rate = measure_read_rate({.bytes = bytes, .n_threads = 1, .huge_pages = huge});
      ASSERT_TRUE(rate) << rate.error().message();
      EXPECT_GT(*rate, 1e8) << bytes;
      EXPECT_LT(*rate, 1e13) << bytes;
    }
  }
}

TEST(ReadRate, of_more_memory_than_there_is_is_refused) {
  const auto rate = measure_read_rate({.bytes = size_t{1} << 62, .n_threads = 1});
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().code, ErrorCode::kResourceExhausted);
}

TEST(MachineLimits, cover_one_thread_and_all_and_survive_json) {
  const auto record = measure_machine_limits({.n_threads = 2, .most_bytes = 1 << 20});
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->reads.size(), 8U);  // 64 KiB, 256 KiB, 1 MiB, and 1 MiB on small pages
  EXPECT_EQ(record->fork_joins.size(), 2U);
  for (const ReadLimit& read : record->reads) EXPECT_GT(read.bytes_per_second, 0);
  for (const ArithmeticLimit& limit : record->arithmetic) EXPECT_GT(limit.operations_per_second, 0);
  for (const ForkJoinCost& cost : record->fork_joins) EXPECT_GE(cost.seconds, 0);
  const std::string text = record_to_json(*record);
  const auto read = record_from_json<MachineLimitsRecord>(text, "limits.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(record_to_json(*read), text);
}

}  // namespace
}  // namespace assay
