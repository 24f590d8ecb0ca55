// The most arithmetic that this machine does: loops of one instruction over accumulators that stay in
// registers, so that nothing but the arithmetic units limits them. What a kernel reaches is a share of this.
// An operation is a multiplication or an addition: a fused multiply-add of 16 lanes counts 32.
//
// Thread safety: measure one thing at a time. Cost: about 0.1 s a call, no memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "hardware/cpu.h"

namespace assay {

enum class Arithmetic : uint8_t {
  kF32,   // fused multiply-add where the instruction set has it
  kBf16,  // pairs of bf16 accumulated in f32 (VDPBF16PS)
  kInt8,  // u8 x s8 accumulated in s32: VPDPBUSD; VPMADDUBSW and VPMADDWD; on widened s16 PMADDWD
  kCount
};
std::string_view name(Arithmetic arithmetic);  // "f32", "bf16", "int8"

// Operations per second of n_threads together, the best of seven runs. kUnsupported when the CPU lacks the
// instruction set or it has no such instruction (bf16 below avx512), and on CPUs other than x86-64. AMX tiles
// are not measured. n_threads 0: every CPU available.
Result<double> measure_arithmetic_peak(Isa isa, Arithmetic arithmetic, int n_threads);

}  // namespace assay
