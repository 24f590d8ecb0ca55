// The precisions that tune measures when a contract lists none.
#include <cstdio>

#include "tune/candidates.h"

int main() {
  std::printf("reference  %s\n", assay::to_string(assay::reference_precision()).c_str());
  for (const assay::Precision& precision : assay::default_candidates(/*holds_integers=*/true)) {
    std::printf("candidate  %s\n", assay::to_string(precision).c_str());
  }
  return 0;
}
