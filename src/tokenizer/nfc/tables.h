// The data of Unicode normalisation form C, sorted by code point; written by make_tables.py. Hangul is not in
// it.
#pragma once

#include <cstdint>
#include <span>

namespace assay::tokenizer_internal {

// Characters first..last have this canonical combining class; those in no run have class 0.
struct CombiningRun {
  char32_t first;
  char32_t last;
  uint8_t combining_class;
};

// The full canonical decomposition of `code` is letters[start, start + count).
struct Decomposition {
  char32_t code;
  uint16_t start;
  uint8_t count;
};

// first + second compose to `composed`; sorted by first, then second.
struct Composition {
  char32_t first;
  char32_t second;
  char32_t composed;
};

std::span<const CombiningRun> combining_runs();
std::span<const Decomposition> decompositions();
std::span<const char32_t> decomposition_letters();
std::span<const Composition> compositions();

}  // namespace assay::tokenizer_internal
