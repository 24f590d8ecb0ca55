// The triangular factor from which GPTQ reads how later columns make up for earlier ones.
//
// With G = X^T X over the calibration inputs (rows of X), H = G + lambda I, lambda = damping * mean(diag G).
// GPTQ (Frantar et al., 2022, eq. 3 and algorithm 1) uses the upper Cholesky factor U of H^-1 = U^T U. Here H
// = R R^T with R upper triangular is factored instead: R = U^-1, so that no inverse is formed. With the error
// e_i = q_i - w_i of a row the loss is e H e^T = sum over k of (sum_{i<=k} e_i R_ik)^2, and the value of column
// k that later columns cannot improve on is
//
//   target_k = w_k - sum_{i<k} e_i R_ik / R_kk,   each deviation from it costing (q_k - target_k)^2 R_kk^2.
//
// This is algorithm 1 with the update pulled instead of pushed.
//
// Ownership: plain values. Thread safety: pure. Cost: n^3 / 6 multiply-adds in double, 12 n^2 bytes while it
// runs, 4 n^2 kept. The factor is shared by all matrices that read the same input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace assay {

enum class ColumnOrder {
  kNatural,
  // Groups by falling trace, columns inside a group by falling diagonal: what matters most is rounded first,
  // and every group stays together (the paper's act-order, by group).
  kByGroup,
};

struct HessianFactor {
  int64_t n = 0;
  std::vector<int32_t> order;  // position -> column
  std::vector<float> ratios;   // [n, n]; [k, i] = R_ik / R_kk for positions i < k, else 0
  std::vector<float> pivots;   // R_kk^2 by position
};

// gram: [n, n], symmetric; only its lower triangle is read. `group` is used by kByGroup alone. Where rounding
// makes H indefinite, damping is raised tenfold, up to 1. An input that is always zero is given diagonal
// lambda. kInvalidArgument: another size, a value that is not finite, a negative diagonal.
Result<HessianFactor> factor_hessian(std::span<const float> gram, int64_t n, ColumnOrder order, int group,
                                     double damping = 0.01);

}  // namespace assay
