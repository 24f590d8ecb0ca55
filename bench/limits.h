// The machine's limits, measured by probe in the same run as what is compared with them. Header only; a program
// that includes it links assay_probe.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "kernels/backend.h"
#include "probe/arithmetic_peak.h"
#include "probe/read_rate.h"

namespace assay::bench {

// Measured when first asked for, once per number of threads.
class Limits {
 public:
  // Operations per second for products of these activations on the table that the backend runs: the fastest
  // instruction that could compute them (bf16 products may be widened to f32).
  double peak(const Backend& backend, Format activations) {
    const auto found = [&](Arithmetic arithmetic) {
      const auto [it, fresh] = peaks_.try_emplace({isa_of(backend), arithmetic, backend.n_threads()});
      if (fresh) it->second = measure_arithmetic_peak(it->first.isa, arithmetic, backend.n_threads()).value_or(0);
      return it->second;
    };
    if (activations == Format::kInt8) return found(Arithmetic::kInt8);
    if (activations == Format::kBF16) return std::max(found(Arithmetic::kF32), found(Arithmetic::kBf16));
    return found(Arithmetic::kF32);
  }
  // Bytes per second from a working set of that size.
  double read_rate(int n_threads, size_t bytes) {
    const auto [it, fresh] = reads_.try_emplace({n_threads, bytes});
    if (fresh) it->second = measure_read_rate({.bytes = bytes, .n_threads = n_threads}).value_or(0);
    return it->second;
  }

 private:
  struct Key {
    Isa isa;
    Arithmetic arithmetic;
    int n_threads;
    auto operator<=>(const Key&) const = default;
  };
  static Isa isa_of(const Backend& backend) {
    for (const Isa isa : {Isa::kAvx512, Isa::kAvx2})
      if (backend.name().find(name(isa)) != std::string::npos) return isa;
    return Isa::kPortable;
  }

  std::map<Key, double> peaks_;
  std::map<std::pair<int, size_t>, double> reads_;
};

}  // namespace assay::bench
