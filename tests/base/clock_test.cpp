#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace assay {
namespace {

TEST(VirtualClock, moves_only_when_told) {
  VirtualClock clock;
  EXPECT_EQ(clock.now_seconds(), 0);
  clock.advance(1.5);
  clock.advance(0.25);
  EXPECT_EQ(clock.now_seconds(), 1.75);
  clock.set(100);
  EXPECT_EQ(clock.now_seconds(), 100);
}

TEST(VirtualClock, advances_from_several_threads_add_up) {
  VirtualClock clock;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&clock] {
      for (int i = 0; i < 10000; ++i) clock.advance(0.5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clock.now_seconds(), 15000);
}

TEST(WallClock, never_goes_back_and_moves) {
  const WallClock clock;
  const double start = clock.now_seconds();
  double before = start;
  for (int i = 0; i < 1000; ++i) {
    const double now = clock.now_seconds();
    ASSERT_GE(now, before);
    before = now;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(clock.now_seconds() - start, 0.002);
}

TEST(Stopwatch, counts_from_its_start_or_restart) {
  Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const double first = watch.seconds();
  EXPECT_GE(first, 0.005);
  watch.restart();
  const double after = watch.seconds();
  EXPECT_GE(after, 0);
  EXPECT_LE(after, watch.seconds());
}

}  // namespace
}  // namespace assay
