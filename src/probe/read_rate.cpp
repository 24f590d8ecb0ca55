#include "probe/read_rate.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/stats.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "hardware/cpu.h"
#include "hardware/topology.h"

namespace assay {
namespace {

constexpr int kRuns = 5;
constexpr double kRunSeconds = 0.01;
constexpr size_t kStep = 512;  // bytes that one turn of a loop reads

// Reads whole steps; the values go nowhere, but no compiler may leave the loads out.
using Reader = void (*)(const std::byte* data, size_t steps);

#if defined(__x86_64__)

#define EIGHT_TIMES ".irp i,0,1,2,3,4,5,6,7\n"
#define ASSAY_READER(name, body, finish)                                                                  \
  void name(const std::byte* data, size_t steps) {                                                        \
    if (steps == 0) return;                                                                               \
    asm volatile("1:\n" body "add $512, %[p]\n dec %[n]\n jnz 1b\n" finish                                \
                 : [p] "+r"(data), [n] "+r"(steps)                                                        \
                 :                                                                                        \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");       \
  }
ASSAY_READER(read_sse,
             EIGHT_TIMES "movdqa \\i*64(%[p]), %%xmm\\i\n movdqa \\i*64+16(%[p]), %%xmm\\i\n"
                         "movdqa \\i*64+32(%[p]), %%xmm\\i\n movdqa \\i*64+48(%[p]), %%xmm\\i\n.endr\n",
             "")
ASSAY_READER(read_avx2,
             EIGHT_TIMES "vmovdqa \\i*64(%[p]), %%ymm\\i\n vmovdqa \\i*64+32(%[p]), %%ymm\\i\n.endr\n",
             "vzeroupper\n")
ASSAY_READER(read_avx512, EIGHT_TIMES "vmovdqa64 \\i*64(%[p]), %%zmm\\i\n.endr\n", "vzeroupper\n")

Reader reader_of_this_cpu() {
  switch (best_isa(read_cpu().features)) {
    case Isa::kAvx512:
      return read_avx512;
    case Isa::kAvx2:
      return read_avx2;
    case Isa::kPortable:
    case Isa::kCount:
      break;
  }
  return read_sse;
}

#else

void read_words(const std::byte* data, size_t steps) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i < steps * kStep; i += 32) {
    uint64_t words[4];
    std::memcpy(words, data + i, sizeof words);
    for (int k = 0; k < 4; ++k) sums[k] += words[k];
  }
  asm volatile("" : : "r"(sums[0] + sums[1] + sums[2] + sums[3]));
}

Reader reader_of_this_cpu() {
  return read_words;
}

#endif

struct Unmap {
  size_t bytes;
  void operator()(std::byte* data) const { ::munmap(data, bytes); }
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

Result<Mapping> map_memory(size_t bytes, bool huge_pages) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kResourceExhausted, "memory", "cannot map {} to read from", format_bytes(bytes));
  ::madvise(data, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return Mapping(static_cast<std::byte*>(data), Unmap{bytes});
}

}  // namespace

Result<double> measure_read_rate(const ReadTest& test) {
  ThreadPool pool({.n_threads = test.n_threads, .pin_to = cpus_by_core().value_or(std::vector<int>())});
  const auto n_threads = static_cast<size_t>(pool.size());
  const size_t part = std::max<size_t>(test.bytes / n_threads / 4096, 1) * 4096;
  // Whole huge pages, so that the last one is not made of small ones.
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t mapped = (part * n_threads + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  ASSIGN_OR_RETURN(const Mapping memory, map_memory(mapped, test.huge_pages));
  auto start = reinterpret_cast<uintptr_t>(memory.get());
  start = (start + kHugePage - 1) / kHugePage * kHugePage;
  std::byte* data = memory.get() + (start - reinterpret_cast<uintptr_t>(memory.get()));
  // Written, because pages that were not are all the same one.
  pool.parallel_for(pool.size(),
                    [&](int64_t i) { std::memset(data + static_cast<size_t>(i) * part, 1, part); });
  const Reader read = reader_of_this_cpu();
  const auto time = [&](int64_t turns) {
    const Stopwatch watch;
    pool.parallel_for(pool.size(), [&](int64_t i) {
      for (int64_t turn = 0; turn < turns; ++turn) read(data + static_cast<size_t>(i) * part, part / kStep);
    });
    return watch.seconds();
  };
  int64_t turns = 1;
  while (time(turns) < kRunSeconds && turns < (int64_t{1} << 40)) turns *= 2;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double bytes = static_cast<double>(part * n_threads) * static_cast<double>(turns);
    best = std::max(best, bytes / time(turns));
  }
  return best;
}

double measure_fork_join(int n_threads) {
  constexpr int kCalls = 2000, kSteps = 5000;
  ThreadPool pool({.n_threads = n_threads, .pin_to = cpus_by_core().value_or(std::vector<int>())});
  const auto spend = [](int64_t) {
    for (int i = 0; i < kSteps; ++i) asm volatile("" : : : "memory");
  };
  std::vector<double> shared, alone;
  for (int i = 0; i < kCalls; ++i) {
    const Stopwatch watch;
    pool.parallel_for(pool.size(), spend);
    shared.push_back(watch.seconds());
    const Stopwatch again;
    pool.parallel_for(1, spend);  // on this thread alone
    alone.push_back(again.seconds());
  }
  return std::max(median(shared) - median(alone), 0.0);
}

}  // namespace assay
