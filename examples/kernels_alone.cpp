// One matrix at several formats: bytes, and the error of a product against f32. Uses only `kernels` (and what
// it is built on).
#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/backend.h"

namespace {

constexpr int64_t kOutputs = 256, kInputs = 512;

std::vector<float> multiply(assay::Backend& backend, const assay::PackedMatrix& weights,
                            assay::Format activations, const std::vector<float>& x) {
  auto buffer = assay::ActivationBuffer::create(1, kInputs);
  std::vector<float> y(kOutputs);
  const assay::MatmulTask task{.weights = &weights,
                               .input = backend.prepare(activations, x.data(), 1, kInputs, *buffer),
                               .output = y.data(),
                               .output_stride = kOutputs};
  backend.matmul({&task, 1});
  return y;
}

assay::Result<assay::PackedMatrix> pack(const std::vector<float>& values, assay::Format format) {
  if (!assay::is_integer(format)) return assay::pack_floats(values, kOutputs, kInputs, format);
  const auto groups =
      assay::quantise_groups(values, kOutputs, kInputs, format, 32, assay::GroupScheme::kAsymmetric);
  if (!groups) return std::unexpected(groups.error());
  return assay::pack_integers(*groups);
}

double relative_error(const std::vector<float>& y, const std::vector<float>& exact) {
  double error = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    error += std::pow(static_cast<double>(y[i]) - static_cast<double>(exact[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  return std::sqrt(error / size);
}

}  // namespace

int main() {
  using assay::Format;
  const auto backend = assay::make_cpu_backend();
  if (!backend) {
    fmt::print(stderr, "{}\n", backend.error().message());
    return 1;
  }
  assay::Random random(1);
  std::vector<float> values(kOutputs * kInputs), x(kInputs);
  for (float& v : values) v = static_cast<float>(random.normal());
  for (float& v : x) v = static_cast<float>(random.normal());

  fmt::print("{}, {} x {} weights\n", (*backend)->name(), kOutputs, kInputs);
  std::vector<float> exact;
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kFp8E5M2,
                              Format::kInt8, Format::kInt4}) {
    const auto packed = pack(values, format);
    if (!packed) {
      fmt::print(stderr, "{}\n", packed.error().message());
      return 1;
    }
    for (const Format activations : {Format::kF32, Format::kInt8}) {
      const std::vector<float> y = multiply(**backend, *packed, activations, x);
      if (exact.empty()) exact = y;
      fmt::print("{:>9} x {:<5} {:>8} bytes, relative error {:.2e}\n", assay::name(format),
                 assay::name(activations), packed->bytes(), relative_error(y, exact));
    }
  }
  return 0;
}
