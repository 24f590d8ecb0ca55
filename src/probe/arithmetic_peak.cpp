#include "probe/arithmetic_peak.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "hardware/topology.h"

namespace assay {
namespace {

constexpr int kRuns = 7;
constexpr double kRunSeconds = 0.01;

struct Loop {
  void (*run)(int64_t rounds) = nullptr;
  int operations = 0;  // per round
};

#if defined(__x86_64__)

// Written out, so that no compiler moves an accumulator to memory or drops the loop. Registers 16 to 31 need
// no mention: code compiled for the baseline does not use them. Accumulators grow from zero by products of
// ordinary numbers; 24 of them hide the latency of two units. Instructions between 1: and jnz are one round.
#define ASSAY_PEAK_LOOP(name, prepare, body)                                                               \
  void name(int64_t rounds) {                                                                              \
    const float one = 1.0F;                                                                                \
    asm volatile(prepare "1:\n" body "dec %[n]\n jnz 1b\n" FINISH                                          \
                 : [n] "+r"(rounds)                                                                        \
                 : [one] "m"(one)                                                                          \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",   \
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                  \
  }

#define TIMES_8 ".irp i,0,1,2,3,4,5,6,7\n"
#define TIMES_12 ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n"
#define TIMES_24 ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
#define END ".endr\n"

#define FINISH ""
#define PREPARE_SSE                                                          \
  "movss %[one], %%xmm15\n shufps $0, %%xmm15, %%xmm15\n movaps %%xmm15, %%xmm14\n" TIMES_8 \
  "pxor %%xmm\\i, %%xmm\\i\n" END
ASSAY_PEAK_LOOP(f32_portable, PREPARE_SSE,
                TIMES_8 "movaps %%xmm14, %%xmm10\n mulps %%xmm15, %%xmm10\n addps %%xmm10, %%xmm\\i\n" END)
ASSAY_PEAK_LOOP(int8_portable, PREPARE_SSE,
                TIMES_8 "movdqa %%xmm14, %%xmm10\n pmaddwd %%xmm15, %%xmm10\n paddd %%xmm10, %%xmm\\i\n" END)
#undef FINISH

#define FINISH "vzeroupper\n"
#define PREPARE_AVX2                                                                    \
  "vbroadcastss %[one], %%ymm15\n vmovaps %%ymm15, %%ymm14\n vmovaps %%ymm15, %%ymm13\n" TIMES_12 \
  "vpxor %%ymm\\i, %%ymm\\i, %%ymm\\i\n" END
ASSAY_PEAK_LOOP(f32_avx2, PREPARE_AVX2, TIMES_12 "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\i\n" END)
ASSAY_PEAK_LOOP(int8_avx2, PREPARE_AVX2,
                TIMES_12 "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\n vpmaddwd %%ymm13, %%ymm12, %%ymm12\n"
                         "vpaddd %%ymm12, %%ymm\\i, %%ymm\\i\n" END)

#define PREPARE_AVX512                                                  \
  "vbroadcastss %[one], %%zmm31\n vmovaps %%zmm31, %%zmm30\n" TIMES_24 \
  "vpxord %%zmm\\i, %%zmm\\i, %%zmm\\i\n" END
ASSAY_PEAK_LOOP(f32_avx512, PREPARE_AVX512, TIMES_24 "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\i\n" END)
ASSAY_PEAK_LOOP(bf16_avx512, PREPARE_AVX512, TIMES_24 "vdpbf16ps %%zmm30, %%zmm31, %%zmm\\i\n" END)
ASSAY_PEAK_LOOP(int8_avx512, PREPARE_AVX512, TIMES_24 "vpdpbusd %%zmm30, %%zmm31, %%zmm\\i\n" END)
#undef FINISH

// Rows: Isa; columns: Arithmetic.
constexpr Loop kLoops[static_cast<int>(Isa::kCount)][static_cast<int>(Arithmetic::kCount)] = {
    {{f32_portable, 8 * 4 * 2}, {}, {int8_portable, 8 * 8 * 2}},
    {{f32_avx2, 12 * 8 * 2}, {}, {int8_avx2, 12 * 32 * 2}},
    {{f32_avx512, 24 * 16 * 2}, {bf16_avx512, 24 * 32 * 2}, {int8_avx512, 24 * 64 * 2}},
};

Loop loop_of(Isa isa, Arithmetic arithmetic) {
  const CpuFeatures features = read_cpu().features;
  if (!supports(features, isa)) return {};
  if (arithmetic == Arithmetic::kBf16 && !features.avx512_bf16) return {};
  return kLoops[static_cast<int>(isa)][static_cast<int>(arithmetic)];
}

#else

Loop loop_of(Isa, Arithmetic) {
  return {};
}

#endif

}  // namespace

std::string_view name(Arithmetic arithmetic) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "int8"};
  static_assert(std::size(kNames) == static_cast<size_t>(Arithmetic::kCount));
  return kNames[static_cast<size_t>(arithmetic)];
}

Result<double> measure_arithmetic_peak(Isa isa, Arithmetic arithmetic, int n_threads) {
  const Loop loop = loop_of(isa, arithmetic);
  if (loop.run == nullptr) {
    return fail(ErrorCode::kUnsupported, name(isa), "this CPU or program has no {} instruction to measure",
                name(arithmetic));
  }
  // Pinned: two threads on one CPU, where others keep the second busy, would measure one.
  ThreadPool pool({.n_threads = n_threads, .pin_to = cpus_by_core().value_or(std::vector<int>())});
  const auto time = [&](int64_t rounds) {
    const Stopwatch watch;
    pool.parallel_for(pool.size(), [&](int64_t) { loop.run(rounds); });
    return watch.seconds();
  };
  int64_t rounds = 1000;
  while (time(rounds) < kRunSeconds && rounds < (int64_t{1} << 40)) rounds *= 2;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double operations =
        static_cast<double>(rounds) * loop.operations * static_cast<double>(pool.size());
    best = std::max(best, operations / time(rounds));
  }
  return best;
}

}  // namespace assay
