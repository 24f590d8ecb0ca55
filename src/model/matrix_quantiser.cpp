#include "model/matrix_quantiser.h"

#include "kernels/sparse_matrix.h"
#include "numeric/gptq.h"
#include "numeric/group_fit.h"
#include "numeric/sparse_groups.h"

namespace assay {
namespace {

Result<PackedMatrix> quantise_dense(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                    const WeightFormat& format, const InputMoments& moments) {
  const auto pack = [](Result<IntegerGroups> groups) -> Result<PackedMatrix> {
    if (!groups) return std::unexpected(groups.error());
    return pack_integers(*groups);
  };
  switch (format.correction) {
    case Correction::kNone:
      return pack(quantise_groups(
          values, n_outputs, n_inputs, format.format, format.group,
          format.format == Format::kInt4 ? GroupScheme::kAsymmetric : GroupScheme::kSymmetric));
    case Correction::kFit:
    case Correction::kAwq:
      return pack(quantise_fitted(values, n_outputs, n_inputs, format.format, format.group,
                                  moments.mean_square));
    case Correction::kGptq:
      return pack(quantise_gptq(values, n_outputs, format.format, format.group, *moments.factor));
    case Correction::kCount:
      break;
  }
  return fail(ErrorCode::kInternal, "quantising", "no such method");
}

Result<PackedMatrix> quantise_with_blocks(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                          const WeightFormat& format, const InputMoments& moments) {
  auto mask = format.sparsity == Sparsity::kBlock50
                  ? prune_blockwise(values, n_outputs, n_inputs, moments.mean_square)
                  : prune_global(values, n_outputs, n_inputs, moments.mean_square);
  if (!mask) return std::unexpected(mask.error());
  const bool compensate = format.correction == Correction::kGptq;
  ASSIGN_OR_RETURN(const SparseGroups groups,
                   compensate ? quantise_gptq_sparse(values, *mask, format.group, *moments.factor)
                              : quantise_sparse(values, *mask, format.group,
                                                format.correction != Correction::kNone, moments.mean_square));
  return pack_sparse(groups);
}

}  // namespace

Result<PackedMatrix> quantise_matrix(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                     const WeightFormat& format, const InputMoments& moments) {
  if (format.needs_calibration() &&
      (moments.mean_square.empty() || (format.correction == Correction::kGptq && moments.factor == nullptr))) {
    return fail(ErrorCode::kInvalidArgument, to_string(format),
                "needs calibrated weights: the activations of a text, from calibrate()");
  }
  return format.sparsity == Sparsity::kNone
             ? quantise_dense(values, n_outputs, n_inputs, format, moments)
             : quantise_with_blocks(values, n_outputs, n_inputs, format, moments);
}

}  // namespace assay
