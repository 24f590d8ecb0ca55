// How products are cut, and which of two instruction sequences computes bf16 products, chosen by a
// measurement of this machine, once: the choice is kept in assay_home()/tuning, a file
// per CPU and table. Cut sizes never change a result; bf16_pairs changes the order in which bf16 products are
// added, so it too is kept and not measured anew. ASSAY_AUTOTUNE=0 takes the defaults, which are the same on
// every machine.
//
// Failure: a file that cannot be read or written, or is of another CPU, only costs a new measurement.
// Thread safety: any thread; tuning_for() measures under a lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hardware/cpu.h"
#include "kernels/kernel_table.h"

namespace assay {

struct Tuning {
  int64_t rows_per_block = 132;  // of a product with many rows: activations that stay in the second cache
  int64_t tiles_per_block = 12;  // tiles of 16 outputs that read them
  bool bf16_pairs = false;       // KernelTable::matmul_bf16_pairs rather than matmul[bf16][bf16]

  bool operator==(const Tuning&) const = default;
};

// The choice for this machine: in use, kept, or measured now.
Tuning tuning_for(const KernelTable& table);

// Times every candidate on one thread; the fastest of several runs each. A candidate that is not clearly
// faster than the default does not replace it.
Tuning measure_tuning(const KernelTable& table);

// The kept form: lines of "name value". kCorrupt for another form, kInvalidArgument when it is of another CPU
// or table or holds a value that no candidate has.
std::string tuning_text(const Tuning& tuning, const CpuInfo& cpu, Isa isa);
Result<Tuning> parse_tuning(std::string_view text, const CpuInfo& cpu, Isa isa);

}  // namespace assay
