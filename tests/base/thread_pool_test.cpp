#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace assay {
namespace {

// Longer than a waiting thread spins (100 us), so that it has parked.
void let_workers_park() {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

// All threads at once, also where there are fewer CPUs: the interleavings are what is tested.
ThreadPoolOptions all_of(int n_threads) {
  return {.n_threads = n_threads, .may_exceed_cpus = true};
}

class Pool : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST_P(Pool, runs_every_index_exactly_once) {
  ThreadPool pool(all_of(GetParam()));
  EXPECT_EQ(pool.size(), GetParam());
  for (const int64_t n : {0, 1, 2, 3, 7, 64, 10000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
    pool.parallel_for(
        n, [&](int64_t i) { runs[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed); });
    for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
  }
}

TEST_P(Pool, negative_count_runs_nothing) {
  ThreadPool pool(all_of(GetParam()));
  bool ran = false;
  pool.parallel_for(-5, [&](int64_t) { ran = true; });
  EXPECT_FALSE(ran);
}

TEST_P(Pool, results_are_visible_after_the_call) {
  ThreadPool pool(all_of(GetParam()));
  std::vector<int64_t> squares(1000);  // plain memory: the pool's own ordering must publish it
  for (int64_t round = 0; round < 50; ++round) {
    pool.parallel_for(1000, [&](int64_t i) { squares[static_cast<size_t>(i)] = i * i + round; });
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(squares[static_cast<size_t>(i)], i * i + round);
  }
}

TEST_P(Pool, nested_calls_run_on_the_calling_thread) {
  ThreadPool pool(all_of(GetParam()));
  std::vector<std::atomic<int>> runs(8 * 16);
  std::atomic<int> strayed{0};
  pool.parallel_for(8, [&](int64_t outer) {
    const auto self = std::this_thread::get_id();
    pool.parallel_for(16, [&](int64_t inner) {
      runs[static_cast<size_t>(outer * 16 + inner)].fetch_add(1);
      if (std::this_thread::get_id() != self) strayed.fetch_add(1);
    });
  });
  for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
  EXPECT_EQ(strayed.load(), 0);
}

// A few hundred nanoseconds that the compiler cannot remove.
void spend_time(uint64_t amount) {
  std::atomic<uint64_t> sink{0};
  for (uint64_t i = 0; i < amount; ++i) sink.store(i, std::memory_order_relaxed);
}

// Many short jobs back to back, some of no length, some long enough for workers to join, each with a body on
// the caller's stack that dies with it: a worker that is late must neither miss an index, nor run one of the
// next job with the body of the last.
TEST_P(Pool, many_generations_lose_nothing) {
  ThreadPool pool(all_of(GetParam()));
  std::vector<int64_t> slots(64);
  for (int64_t generation = 1; generation <= 20000; ++generation) {
    const int64_t n = 1 + generation % 64;
    const auto amount = static_cast<uint64_t>(generation % 7) * 16;
    pool.parallel_for(n, [&slots, generation, amount](int64_t i) {
      spend_time(amount);
      slots[static_cast<size_t>(i)] = generation;
    });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(slots[static_cast<size_t>(i)], generation);
  }
}

// Far more threads than processors: most workers are late for most jobs.
TEST(ThreadPool, more_threads_than_processors_lose_nothing) {
  ThreadPool pool(all_of(64));
  EXPECT_EQ(pool.size(), 64);
  for (int generation = 0; generation < 300; ++generation) {
    std::atomic<int64_t> sum{0};
    pool.parallel_for(1000, [&](int64_t i) { sum.fetch_add(i, std::memory_order_relaxed); });
    ASSERT_EQ(sum.load(), 499500);
  }
}

TEST_P(Pool, works_again_after_parking) {
  ThreadPool pool(all_of(GetParam()));
  for (int round = 0; round < 10; ++round) {
    let_workers_park();
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t i) { sum.fetch_add(i); });
    ASSERT_EQ(sum.load(), 4950);
  }
}

TEST_P(Pool, is_destroyed_unused_parked_or_just_used) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool unused(all_of(GetParam()));
  }
  for (int round = 0; round < 5; ++round) {
    ThreadPool parked(all_of(GetParam()));
    let_workers_park();
  }
  std::atomic<int> runs{0};
  for (int round = 0; round < 100; ++round) {
    ThreadPool used(all_of(GetParam()));
    used.parallel_for(4, [&](int64_t) { runs.fetch_add(1); });
  }
  EXPECT_EQ(runs.load(), 400);
}

// Each index waits for the other two, so three different threads must hold them, whatever the load of the
// machine. The wait is bounded only so that a broken pool fails instead of hanging. Empty jobs in between
// make workers come late.
TEST(ThreadPool, every_thread_takes_part_when_there_is_work_for_all) {
  ThreadPool pool(all_of(3));
  for (int generation = 0; generation < 50; ++generation) {
    std::atomic<int> arrived{0};
    std::atomic<bool> alone{false};
    pool.parallel_for(3, [&](int64_t) {
      arrived.fetch_add(1);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (arrived.load() < 3 && !alone.load()) {
        if (std::chrono::steady_clock::now() > deadline) alone.store(true);
        std::this_thread::yield();
      }
    });
    ASSERT_FALSE(alone.load()) << generation;
    for (int i = 0; i < generation % 5; ++i) pool.parallel_for(4, [](int64_t) {});
  }
}

TEST(ThreadPool, two_pools_work_side_by_side) {
  std::atomic<int64_t> total{0};
  const auto use = [&total] {
    ThreadPool pool(all_of(2));
    for (int round = 0; round < 500; ++round) pool.parallel_for(10, [&](int64_t i) { total.fetch_add(i); });
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_EQ(total.load(), 2 * 500 * 45);
}

// The first pool's call holds every CPU while the second one's runs.
TEST(ThreadPool, call_beside_one_that_holds_every_cpu_runs_on_its_own_thread) {
  if (available_cpus() == 1) GTEST_SKIP() << "one CPU: every call runs on its own thread";
  ThreadPool first, second;
  std::set<std::thread::id> ids;
  std::mutex mutex;
  std::atomic<bool> release{false};
  std::thread holder([&] {
    first.parallel_for(available_cpus(), [&](int64_t) {
      while (!release.load()) std::this_thread::yield();
    });
  });
  while (first.forks() == 0) std::this_thread::yield();
  second.parallel_for(1000, [&](int64_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(second.forks(), 0);
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
  release.store(true);
  holder.join();
  second.parallel_for(1000, [](int64_t) {});
  EXPECT_EQ(second.forks(), 1);
}

TEST(ThreadPool, larger_than_the_machine_runs_no_more_than_its_cpus_at_once) {
  ThreadPool pool(available_cpus() + 3);
  std::atomic<int> running{0}, most{0};
  for (int round = 0; round < 200; ++round) {
    pool.parallel_for(64, [&](int64_t) {
      const int now = running.fetch_add(1) + 1;
      for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::yield();  // lets others in where there are too many
      running.fetch_sub(1);
    });
  }
  EXPECT_LE(most.load(), available_cpus());
  EXPECT_GE(most.load(), 1);
}

// The first index takes until all others are done: they must not wait behind it.
TEST(ThreadPool, indices_behind_a_long_one_are_taken_by_others) {
  ThreadPool pool(all_of(2));
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done{0};
    std::atomic<bool> late{false};
    pool.parallel_for(100, [&](int64_t i) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (i == 0 && done.load() < 99 && !late.load()) {
        if (std::chrono::steady_clock::now() > deadline) late.store(true);
        std::this_thread::yield();
      }
      done.fetch_add(1);
    });
    ASSERT_FALSE(late.load());
    ASSERT_EQ(done.load(), 100);
  }
}

double process_cpu_seconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Processor time, not elapsed time: a busy machine cannot make it larger. Calls in between leave workers in
// every state that they can park from.
TEST(ThreadPool, parked_pool_uses_no_processor_time) {
  ThreadPool pool(all_of(4));
  double used = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) pool.parallel_for(8, [](int64_t) {});
    let_workers_park();
    const double before = process_cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    used += process_cpu_seconds() - before;
  }
  EXPECT_LT(used, 0.05);  // of 0.5 s; one spinning worker would use all of it
}

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

TEST(ThreadPool, pinned_threads_stay_on_their_cpus_and_later_pools_are_free) {
  const std::vector<int> all = cpus_of_this_thread();
  const std::vector<int> wanted{all.back(), all.front()};
  {
    ThreadPool pinned({.n_threads = 2, .pin_to = wanted, .may_exceed_cpus = true});
    std::array<std::vector<int>, 2> seen;
    std::atomic<int> arrived{0};
    const auto caller = std::this_thread::get_id();
    pinned.parallel_for(2, [&](int64_t) {
      seen[std::this_thread::get_id() == caller ? 0 : 1] = cpus_of_this_thread();
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(seen[0], std::vector{wanted[0]});
    EXPECT_EQ(seen[1], std::vector{wanted[1]});
    ThreadPool free(all_of(2));  // made by a pinned thread
    arrived = 0;
    free.parallel_for(2, [&](int64_t) {
      if (std::this_thread::get_id() != caller) seen[1] = cpus_of_this_thread();
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(seen[1], all);
  }
  EXPECT_EQ(cpus_of_this_thread(), all);
}

TEST(ThreadPool, cpus_that_do_not_exist_are_ignored) {
  ThreadPool pool({.n_threads = 2, .pin_to = {-1, 1 << 20}});
  std::atomic<int64_t> sum{0};
  pool.parallel_for(100, [&](int64_t i) { sum.fetch_add(i); });
  EXPECT_EQ(sum.load(), 4950);
}

TEST(ThreadPool, default_size_is_the_cpus_of_this_process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_EQ(available_cpus(), CPU_COUNT(&set));
  EXPECT_EQ(ThreadPool().size(), available_cpus());
  EXPECT_EQ(ThreadPool(-3).size(), available_cpus());
}

}  // namespace
}  // namespace assay
