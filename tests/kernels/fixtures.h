// Shared by the kernel tests: the tables of this CPU, random tensors, double-precision references.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernel_table.h"

namespace assay::kernels_test {

// Every table this CPU has, or the one that ASSAY_ISA forces.
inline std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> found;
  const char* forced = std::getenv("ASSAY_ISA");
  for (int i = 0; i < static_cast<int>(Isa::kCount); ++i) {
    const auto isa = static_cast<Isa>(i);
    if (forced != nullptr && *forced != '\0' && name(isa) != forced) continue;
    if (const KernelTable* table = kernel_table(isa)) found.push_back(table);
  }
  return found;
}

inline std::vector<float> normals(Random& random, int64_t n, double deviation = 1) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
  return values;
}

inline bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof(float)) == 0;
}

inline ::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " values against " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i]))
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
  }
  return ::testing::AssertionSuccess();
}

// Unit round-off of f32.
inline constexpr double kEpsilon = 0x1p-24;

}  // namespace assay::kernels_test
