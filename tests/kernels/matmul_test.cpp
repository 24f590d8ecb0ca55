// Every matmul kernel of every table against a sum in double precision.
#include "kernels/packed_matrix.h"

#include <algorithm>
#include <memory>

#include "kernels/activations.h"
#include "kernels/backend.h"
#include "kernels/fixtures.h"
#include "numeric/bfloat16.h"

namespace assay {
namespace {

using namespace kernels_test;

struct Case {
  Format weights;
  int group = 32;
  bool with_minimum = false;
  bool half_scales = true;
};

std::string describe(const Case& c) {
  return std::string(name(c.weights)) + ":" + std::to_string(c.group) +
         (c.with_minimum ? " minimum" : " zero point") + (c.half_scales ? " f16" : " f32");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Format format :
       {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kFp8E5M2}) {
    all.push_back({.weights = format});
  }
  for (const Format format : {Format::kInt8, Format::kInt4}) {
    for (const int group : {16, 32, 64, 128}) {
      for (const bool minimum : {false, true}) {
        for (const bool half : {false, true}) all.push_back({format, group, minimum, half});
      }
    }
  }
  return all;
}

PackedMatrix make_weights(const Case& c, Random& random, int64_t n_outputs, int64_t n_inputs) {
  if (!is_integer(c.weights))
    return *pack_floats(normals(random, n_outputs * n_inputs), n_outputs, n_inputs, c.weights);
  IntegerGroups groups;
  groups.format = c.weights;
  groups.group = c.group;
  groups.rows = n_outputs;
  groups.cols = n_inputs;
  const int n_codes = c.weights == Format::kInt8 ? 256 : 16;
  groups.zero_point = c.with_minimum ? -1 : static_cast<int>(random.below(static_cast<uint64_t>(n_codes)));
  for (int64_t i = 0; i < n_outputs * n_inputs; ++i) {
    groups.codes.push_back(static_cast<uint8_t>(random.below(static_cast<uint64_t>(n_codes))));
  }
  for (int64_t i = 0; i < n_outputs * groups.groups_per_row(); ++i) {
    // 1/64 steps are exact in f16; the others need f32.
    const double scale =
        c.half_scales ? static_cast<double>(random.between(1, 64)) / 64 : random.uniform(0.01, 1);
    const double minimum =
        c.half_scales ? static_cast<double>(random.between(-64, 64)) / 8 : random.uniform(-8, 8);
    groups.scales.push_back(static_cast<float>(scale));
    groups.minimums.push_back(c.with_minimum ? static_cast<float>(minimum)
                                             : -static_cast<float>(groups.zero_point) * groups.scales.back());
  }
  return *pack_integers(groups);
}

// What a row of activations means, in double.
std::vector<double> decoded(const ActivationView& x, int64_t row) {
  std::vector<double> out(static_cast<size_t>(x.stride));
  for (int64_t i = 0; i < x.stride; ++i) {
    const int64_t at = row * x.stride + i;
    double value = 0;
    if (x.format == Format::kF32) value = static_cast<const float*>(x.values)[at];
    if (x.format == Format::kBF16) value = bf16_bits_to_f32(static_cast<const uint16_t*>(x.values)[at]);
    if (x.format == Format::kInt8) {
      value = static_cast<double>(x.scales[at / kActivationGroup]) * static_cast<const int8_t*>(x.values)[at];
    }
    out[static_cast<size_t>(i)] = value;
  }
  return out;
}

struct Product {
  double value;
  double magnitude;  // sum of |w| |x|
};

Product reference(std::span<const float> w, std::span<const double> x) {
  Product p{};
  for (size_t i = 0; i < w.size(); ++i) {
    p.value += w[i] * x[i];
    p.magnitude += std::abs(w[i] * x[i]);
  }
  return p;
}

// Rounding of n products and n additions, each of a partial sum that stays below the sum of magnitudes. With
// integer weights the codes' parts do not cancel like the values do: code * scale and minimum count apart.
double bound(const Product& p, const PackedMatrix& w, std::span<const double> x, double largest_part) {
  double magnitude = p.magnitude;
  if (is_integer(w.format)) {
    magnitude = 0;
    for (const double v : x) magnitude += 2 * largest_part * std::abs(v);
  }
  return (static_cast<double>(w.n_inputs) + 8) * kEpsilon * magnitude + 1e-30;
}

std::shared_ptr<Backend> backend_of(const KernelTable& table, int n_threads = 1) {
  return *make_cpu_backend(name(table.isa), n_threads);
}

void check_product(const KernelTable& table, const Case& c, Random& random, int64_t rows, int64_t outputs,
                   int64_t inputs) {
  const auto backend = backend_of(table);
  const PackedMatrix w = make_weights(c, random, outputs, inputs);
  const std::vector<float> x = normals(random, rows * inputs), bias = normals(random, outputs);
  ActivationBuffer buffer = *ActivationBuffer::create(rows, inputs);
  std::vector<float> unpacked(static_cast<size_t>(inputs));
  for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
    SCOPED_TRACE(describe(c) + " x " + std::string(name(activations)) + " on " +
                 std::string(name(table.isa)) + ", " + std::to_string(rows) + " x " +
                 std::to_string(outputs) + " x " + std::to_string(inputs));
    const ActivationView view = backend->prepare(activations, x.data(), rows, inputs, buffer);
    const int64_t stride = outputs + 3;
    const std::vector<float> before = normals(random, rows * stride);
    std::vector<float> y = before;
    const bool extra = random.below(2) == 0;
    const MatmulTask task{&w, view, y.data(), stride, extra, extra ? bias.data() : nullptr};
    backend->matmul({&task, 1});
    for (int64_t o = 0; o < outputs; ++o) {
      unpack_row(w, o, unpacked);
      for (int64_t r = 0; r < rows; ++r) {
        const std::vector<double> input = decoded(view, r);
        const Product p = reference(unpacked, input);
        const auto at = static_cast<size_t>(r * stride + o);
        const double added =
            extra ? static_cast<double>(before[at]) + static_cast<double>(bias[static_cast<size_t>(o)]) : 0;
        const double limit = bound(p, w, input, 256) + 4 * kEpsilon * (std::abs(p.value) + 16);
        ASSERT_NEAR(y[at], p.value + added, limit) << "row " << r << ", output " << o;
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = outputs; i < stride; ++i) {
        const auto at = static_cast<size_t>(r * stride + i);
        ASSERT_TRUE(same_bits(y[at], before[at])) << "written past the last output of row " << r;
      }
    }
  }
}

TEST(Matmul, every_format_pair_agrees_with_double_precision) {
  Random random(1, "matmul");
  for (const KernelTable* table : tables()) {
    for (const Case& c : cases()) {
      ASSERT_NO_FATAL_FAILURE(check_product(*table, c, random, 1, 40, 96));
      ASSERT_NO_FATAL_FAILURE(
          check_product(*table, c, random, random.between(2, 9), random.between(1, 80), 200));
      ASSERT_NO_FATAL_FAILURE(check_product(*table, c, random, random.between(1, 40), random.between(1, 40),
                                            random.between(1, 600)));
    }
  }
}

}  // namespace
}  // namespace assay
