// Every matmul kernel of every table against a sum in double precision.
#include "kernels/packed_matrix.h"

#include <algorithm>
#include <memory>

#include "kernels/activations.h"
#include "kernels/backend.h"
#include "kernels/fixtures.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"

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

IntegerGroups make_groups(const Case& c, Random& random, int64_t n_outputs, int64_t n_inputs) {
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
  return groups;
}

PackedMatrix make_weights(const Case& c, Random& random, int64_t n_outputs, int64_t n_inputs) {
  if (is_integer(c.weights)) return *pack_integers(make_groups(c, random, n_outputs, n_inputs));
  return *pack_floats(normals(random, n_outputs * n_inputs), n_outputs, n_inputs, c.weights);
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

// What one product may be off by. f32 accumulation of n terms is off by at most (n + 2) eps times the sum of
// the terms' magnitudes, a dequantised weight by 2 eps of its parts. The terms of integer x int8 are whole
// groups: scale times an exact dot product, and minimum times an exact sum; both are bounded by their codes'
// magnitudes. A bf16 pair may drop subnormals, below 2^-126 each.
double bound(const Product& p, const PackedMatrix& w, std::span<const double> x, int64_t output) {
  const double terms = static_cast<double>(w.n_inputs) + 8;
  if (!is_integer(w.format)) return terms * kEpsilon * p.magnitude + terms * 0x1p-120;
  const int64_t tile = output / kTileRows * w.groups_per_row() * kTileRows + output % kTileRows;
  const auto scale_at = [&](const AlignedBuffer& buffer, int64_t group) {
    const int64_t at = tile + group * kTileRows;
    return std::abs(static_cast<double>(w.scale_format == Format::kF16
                                            ? f16_bits_to_f32(buffer.as<uint16_t>()[at])
                                            : buffer.as<float>()[at]));
  };
  const double largest_code = w.format == Format::kInt8 ? 255 : 15;
  double magnitude = 0;
  for (int64_t k = 0; k < w.n_inputs; ++k) {
    const int64_t group = k / w.group;
    const double minimum = w.minimums.empty() ? 0 : scale_at(w.minimums, group);
    magnitude += (largest_code * scale_at(w.scales, group) + minimum) * std::abs(x[static_cast<size_t>(k)]);
  }
  return terms * kEpsilon * magnitude + 1e-37;
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
        const double limit = bound(p, w, input, o) + 4 * kEpsilon * (std::abs(p.value) + std::abs(added));
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

// The integer formula of kernel_table.h, step by step: with fused multiply-adds or without, as the table has
// it.
float integer_product(const PackedMatrix& w, const IntegerGroups& groups, const ActivationView& x,
                      int64_t row, int64_t output, bool fused) {
  const int segment = groups.group == 16 ? 16 : 32;
  float y = 0;
  for (int64_t k = 0; k < groups.cols; k += segment) {
    int32_t dot = 0, sum = 0;
    for (int64_t i = k; i < std::min<int64_t>(k + segment, groups.cols); ++i) {
      const int32_t code = static_cast<const int8_t*>(x.values)[row * x.stride + i];
      dot += groups.codes[static_cast<size_t>(output * groups.cols + i)] * code;
      sum += code;
    }
    const auto group = static_cast<size_t>(output * groups.groups_per_row() + k / groups.group);
    const float x_scale = x.scales[(row * x.stride + k) / kActivationGroup];
    const auto d = static_cast<float>(dot - std::max(groups.zero_point, 0) * sum);
    const float scaled = d * x_scale, scale = groups.scales[group];
    y = fused ? std::fma(scaled, scale, y) : scaled * scale + y;
    if (groups.zero_point >= 0) continue;
    const float scaled_sum = x_scale * static_cast<float>(sum);
    y = fused ? std::fma(groups.minimums[group], scaled_sum, y) : groups.minimums[group] * scaled_sum + y;
  }
  EXPECT_EQ(w.n_inputs, groups.cols);
  return y;
}

TEST(Matmul, integer_by_int8_follows_the_written_formula_to_the_bit) {
  Random random(3, "integer_formula");
  for (const KernelTable* table : tables()) {
    const auto backend = backend_of(*table);
    for (const Case& c : cases()) {
      if (!is_integer(c.weights)) continue;
      SCOPED_TRACE(describe(c) + " on " + std::string(name(table->isa)));
      const int64_t rows = random.between(1, 9), outputs = random.between(1, 50),
                    inputs = random.between(1, 300);
      const IntegerGroups groups = make_groups(c, random, outputs, inputs);
      const PackedMatrix w = *pack_integers(groups);
      const std::vector<float> x = normals(random, rows * inputs, 3);
      ActivationBuffer buffer = *ActivationBuffer::create(rows, inputs);
      const ActivationView view = backend->prepare(Format::kInt8, x.data(), rows, inputs, buffer);
      std::vector<float> y(static_cast<size_t>(rows * outputs));
      const MatmulTask task{&w, view, y.data(), outputs, false, nullptr};
      backend->matmul({&task, 1});
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < outputs; ++o) {
          const float expected = integer_product(w, groups, view, r, o, table->isa != Isa::kPortable);
          ASSERT_TRUE(same_bits(y[static_cast<size_t>(r * outputs + o)], expected)) << r << ", " << o;
        }
      }
    }
  }
}

std::vector<float> multiply(Backend& backend, const PackedMatrix& w, const ActivationView& x) {
  std::vector<float> y(static_cast<size_t>(x.n_rows * w.n_outputs));
  const MatmulTask task{&w, x, y.data(), w.n_outputs, false, nullptr};
  backend.matmul({&task, 1});
  return y;
}

TEST(Matmul, rows_are_bit_identical_alone_and_in_any_batch) {
  Random random(4, "batch_invariance");
  for (const KernelTable* table : tables()) {
    const auto backend = backend_of(*table);
    for (const Case& c : cases()) {
      for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
        SCOPED_TRACE(describe(c) + " x " + std::string(name(activations)) + " on " +
                     std::string(name(table->isa)));
        // Integer products also past the columns that tile registers take at a time.
        const bool wide = is_integer(c.weights) && activations == Format::kInt8;
        const int64_t rows = random.between(17, 70), outputs = random.between(60, 130);
        const int64_t inputs = wide ? random.between(1000, 1200) : random.between(200, 600);
        const PackedMatrix w = make_weights(c, random, outputs, inputs);
        const std::vector<float> x = normals(random, rows * inputs);
        ActivationBuffer buffer = *ActivationBuffer::create(rows, inputs);
        const ActivationView view = backend->prepare(activations, x.data(), rows, inputs, buffer);
        const std::vector<float> together = multiply(*backend, w, view);
        for (int64_t first = 0; first < rows;) {
          const int64_t n = std::min<int64_t>(rows - first, random.below(2) == 0 ? 1 : random.between(1, 20));
          const std::vector<float> piece = multiply(*backend, w, view.rows(first, n));
          ASSERT_TRUE(same_bits(
              piece, std::span(together).subspan(static_cast<size_t>(first * outputs), piece.size())))
              << "rows " << first << " + " << n;
          first += n;
        }
      }
    }
  }
}

TEST(Matmul, results_do_not_depend_on_the_number_of_threads) {
  Random random(5, "threads");
  for (const KernelTable* table : tables()) {
    for (const Case& c :
         {Case{Format::kF32}, Case{Format::kBF16}, Case{Format::kInt8, 64}, Case{Format::kInt4, 32, true}}) {
      for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
        const int64_t rows = random.below(2) == 0 ? 1 : random.between(2, 200),
                      outputs = random.between(100, 400);
        const int64_t inputs = random.between(64, 300);
        const PackedMatrix w = make_weights(c, random, outputs, inputs),
                           v = make_weights(c, random, 33, inputs);
        const std::vector<float> x = normals(random, rows * inputs);
        std::vector<float> first, second;
        for (const int n_threads : {1, 2, 3}) {
          SCOPED_TRACE(describe(c) + " x " + std::string(name(activations)) + ", threads " +
                       std::to_string(n_threads));
          const auto backend = backend_of(*table, n_threads);
          ActivationBuffer buffer = *ActivationBuffer::create(rows, inputs);
          const ActivationView view = backend->prepare(activations, x.data(), rows, inputs, buffer);
          std::vector<float> a(static_cast<size_t>(rows * outputs)), b(static_cast<size_t>(rows * 33));
          const MatmulTask tasks[] = {{&w, view, a.data(), outputs, false, nullptr},
                                      {&v, view, b.data(), 33, false, nullptr}};
          backend->matmul(tasks);
          if (n_threads == 1) {
            first = a;
            second = b;
          }
          ASSERT_TRUE(same_bits(a, first));
          ASSERT_TRUE(same_bits(b, second));
        }
      }
    }
  }
}

TEST(Matmul, no_rows_and_no_tasks_do_nothing) {
  Random random(6, "empty");
  for (const KernelTable* table : tables()) {
    const auto backend = backend_of(*table);
    const PackedMatrix w = make_weights({Format::kInt4}, random, 20, 64);
    ActivationBuffer buffer = *ActivationBuffer::create(1, 64);
    const ActivationView view = backend->prepare(Format::kInt8, nullptr, 0, 64, buffer);
    float untouched = 7;
    const MatmulTask task{&w, view, &untouched, 20, false, nullptr};
    backend->matmul({&task, 1});
    backend->matmul({});
    EXPECT_EQ(untouched, 7);
  }
}

// NaN and infinity reach their own row and nothing else; subnormal inputs do no harm.
TEST(Matmul, special_values_stay_in_their_row) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const KernelTable* table : tables()) {
    const auto backend = backend_of(*table);
    for (const Case& c : cases()) {
      for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
        SCOPED_TRACE(describe(c) + " x " + std::string(name(activations)) + " on " +
                     std::string(name(table->isa)));
        Random random(7, "special");
        constexpr int64_t kRows = 6, kInputs = 96, kOutputs = 37;
        const PackedMatrix w = make_weights(c, random, kOutputs, kInputs);
        std::vector<float> x = normals(random, kRows * kInputs);
        ActivationBuffer buffer = *ActivationBuffer::create(kRows, kInputs);
        const std::vector<float> clean =
            multiply(*backend, w, backend->prepare(activations, x.data(), kRows, kInputs, buffer));
        x[1 * kInputs + 40] = std::numeric_limits<float>::quiet_NaN();
        x[3 * kInputs + 95] = kInfinity;
        for (int64_t i = 0; i < kInputs; ++i) x[static_cast<size_t>(4 * kInputs + i)] = 1e-40F;
        const std::vector<float> y =
            multiply(*backend, w, backend->prepare(activations, x.data(), kRows, kInputs, buffer));
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t o = 0; o < kOutputs; ++o) {
            const auto at = static_cast<size_t>(r * kOutputs + o);
            if (r == 1) {
              ASSERT_TRUE(std::isnan(y[at])) << o;
            }
            if (r == 3) {
              ASSERT_FALSE(std::isfinite(y[at])) << o;
            }
            if (r == 4) {
              ASSERT_LT(std::abs(y[at]), 1e-30F) << o;
            }
            if (r != 1 && r != 3 && r != 4) {
              ASSERT_TRUE(same_bits(y[at], clean[at])) << r << ", " << o;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
