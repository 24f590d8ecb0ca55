// Sparse products of every table against a sum in double precision over rows that numeric dequantised.
#include "kernels/sparse_matrix.h"

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
  int group = 32;
  bool half_scales = true;
};
constexpr Case kCases[] = {{32, true}, {32, false}, {64, true}, {96, false}, {128, true}};

// Some tiles keep nothing, some all.
SparseGroups make_groups(const Case& c, Random& random, int64_t n_outputs, int64_t n_inputs) {
  SparseGroups sparse;
  sparse.mask = {.rows = n_outputs, .cols = n_inputs, .kept = {}};
  for (int64_t tile = 0; tile < sparse.mask.tiles(); ++tile) {
    const uint64_t keep_of_4 = random.below(5);
    for (int64_t block = 0; block < sparse.mask.blocks(); ++block) {
      sparse.mask.kept.push_back(random.below(4) < keep_of_4);
    }
  }
  IntegerGroups& groups = sparse.groups;
  groups.format = Format::kInt4;
  groups.group = c.group;
  groups.rows = n_outputs;
  groups.cols = n_inputs;
  for (int64_t r = 0; r < n_outputs; ++r) {
    for (int64_t k = 0; k < n_inputs; ++k) {
      const bool kept = sparse.mask.keeps(r / kBlockRows, k / kBlockCols);
      groups.codes.push_back(kept ? static_cast<uint8_t>(random.below(16)) : 0);
    }
  }
  for (int64_t i = 0; i < n_outputs * groups.groups_per_row(); ++i) {
    const double step = c.half_scales ? 1.0 / 64 : 1.0 / 64.03;
    groups.scales.push_back(static_cast<float>(step * static_cast<double>(random.between(1, 64))));
    groups.minimums.push_back(static_cast<float>(8 * step * static_cast<double>(random.between(-64, 64))));
  }
  return sparse;
}

std::vector<double> decoded(const ActivationView& x, int64_t row) {
  std::vector<double> out(static_cast<size_t>(x.n_cols));
  for (int64_t i = 0; i < x.n_cols; ++i) {
    const int64_t at = row * x.stride + i;
    double& value = out[static_cast<size_t>(i)];
    if (x.format == Format::kF32) value = static_cast<double>(static_cast<const float*>(x.values)[at]);
    if (x.format == Format::kBF16) {
      value = static_cast<double>(bf16_bits_to_f32(static_cast<const uint16_t*>(x.values)[at]));
    }
    if (x.format == Format::kInt8) {
      value = static_cast<double>(x.scales[at / kActivationGroup]) * static_cast<const int8_t*>(x.values)[at];
    }
  }
  return out;
}

std::shared_ptr<Backend> backend_of(const KernelTable& table, int n_threads = 1) {
  return *make_cpu_backend(name(table.isa), n_threads);
}

// What a product may be off by: n f32 additions of terms that a code of 15 and the minimum bound.
double bound(const SparseGroups& sparse, int64_t output, std::span<const double> x) {
  const IntegerGroups& g = sparse.groups;
  double largest_scale = 0, largest_minimum = 0, magnitude = 0;
  for (int64_t i = output * g.groups_per_row(); i < (output + 1) * g.groups_per_row(); ++i) {
    largest_scale = std::max(largest_scale, std::abs(static_cast<double>(g.scales[static_cast<size_t>(i)])));
    largest_minimum =
        std::max(largest_minimum, std::abs(static_cast<double>(g.minimums[static_cast<size_t>(i)])));
  }
  for (const double value : x) magnitude += (15 * largest_scale + largest_minimum) * std::abs(value);
  return (static_cast<double>(x.size()) + 8) * kEpsilon * magnitude + 1e-37;
}

void check_product(const KernelTable& table, const Case& c, Random& random, int64_t rows, int64_t outputs,
                   int64_t inputs) {
  const auto backend = backend_of(table);
  const SparseGroups sparse = make_groups(c, random, outputs, inputs);
  const PackedMatrix w = pack_sparse(sparse).value();
  const std::vector<float> x = normals(random, rows * inputs), bias = normals(random, outputs);
  ActivationBuffer buffer = *ActivationBuffer::create(rows, inputs);
  std::vector<float> weights(static_cast<size_t>(inputs));
  for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
    SCOPED_TRACE("group " + std::to_string(c.group) + " x " + std::string(name(activations)) + " on " +
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
      dequantise_row(sparse, o, weights);
      for (int64_t r = 0; r < rows; ++r) {
        const std::vector<double> input = decoded(view, r);
        const auto at = static_cast<size_t>(r * stride + o);
        double expected =
            extra ? static_cast<double>(before[at]) + static_cast<double>(bias[static_cast<size_t>(o)]) : 0;
        for (size_t k = 0; k < input.size(); ++k) expected += static_cast<double>(weights[k]) * input[k];
        ASSERT_NEAR(y[at], expected, bound(sparse, o, input) + 4 * kEpsilon * std::abs(expected))
            << "row " << r << ", output " << o;
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

TEST(SparseMatrix, products_agree_with_double_precision) {
  Random random(1, "sparse matmul");
  for (const KernelTable* table : tables()) {
    for (const Case& c : kCases) {
      ASSERT_NO_FATAL_FAILURE(check_product(*table, c, random, 1, 48, 96));
      ASSERT_NO_FATAL_FAILURE(check_product(*table, c, random, 8, 32, 576));
      for (int trial = 0; trial < 4; ++trial) {
        ASSERT_NO_FATAL_FAILURE(check_product(*table, c, random, random.between(1, 21), random.between(1, 80),
                                              random.between(1, 600)));
      }
    }
  }
}

// More blocks in a row than the kernels prepare at once.
TEST(SparseMatrix, very_wide_rows_agree_with_double_precision) {
  Random random(2, "wide");
  for (const KernelTable* table : tables()) {
    ASSERT_NO_FATAL_FAILURE(check_product(*table, {64, true}, random, 3, 17, 32 * 1100 + 5));
  }
}

// A row of the batch gives the same bits alone, among others, and on any number of threads.
TEST(SparseMatrix, results_do_not_depend_on_batch_or_threads) {
  Random random(3, "batch");
  constexpr int64_t kRows = 23, kOutputs = 200, kInputs = 352;
  for (const KernelTable* table : tables()) {
    const SparseGroups sparse = make_groups({64, true}, random, kOutputs, kInputs);
    const PackedMatrix w = pack_sparse(sparse).value();
    const std::vector<float> x = normals(random, kRows * kInputs);
    ActivationBuffer buffer = *ActivationBuffer::create(kRows, kInputs);
    for (const Format activations : {Format::kF32, Format::kBF16, Format::kInt8}) {
      std::vector<float> whole(kRows * kOutputs);
      {
        const auto backend = backend_of(*table, 1);
        const MatmulTask task{&w, backend->prepare(activations, x.data(), kRows, kInputs, buffer), whole.data(),
                              kOutputs, false, nullptr};
        backend->matmul({&task, 1});
      }
      for (const int n_threads : {1, 2, 3}) {
        const auto backend = backend_of(*table, n_threads);
        for (int64_t first = 0; first < kRows;) {
          const int64_t n = std::min<int64_t>(random.between(1, 12), kRows - first);
          std::vector<float> part(static_cast<size_t>(n * kOutputs));
          const MatmulTask task{&w, backend->prepare(activations, x.data() + first * kInputs, n, kInputs, buffer),
                                part.data(), kOutputs, false, nullptr};
          backend->matmul({&task, 1});
          for (size_t i = 0; i < part.size(); ++i) {
            ASSERT_TRUE(same_bits(part[i], whole[static_cast<size_t>(first * kOutputs) + i]))
                << name(activations) << " on " << name(table->isa) << ", row " << first;
          }
          first += n;
        }
      }
    }
  }
}

TEST(SparseMatrix, unpacks_to_what_was_packed_and_stores_kept_blocks_only) {
  Random random(4, "unpack");
  for (const Case& c : kCases) {
    const int64_t outputs = random.between(1, 60), inputs = random.between(1, 500);
    const SparseGroups sparse = make_groups(c, random, outputs, inputs);
    const PackedMatrix w = pack_sparse(sparse).value();
    EXPECT_EQ(w.codes.size(), static_cast<size_t>(sparse.mask.n_kept()) * 256);
    std::vector<float> expected(static_cast<size_t>(inputs)), row(static_cast<size_t>(inputs));
    for (int64_t o = 0; o < outputs; ++o) {
      dequantise_row(sparse, o, expected);
      unpack_row(w, o, row);
      ASSERT_EQ(row, expected);
    }
  }
}

TEST(SparseMatrix, half_the_blocks_take_half_the_bytes) {
  Random random(5, "bytes");
  const std::vector<float> values = normals(random, 256 * 1024);
  const BlockMask mask = prune_blockwise(values, 256, 1024, {}).value();
  const PackedMatrix sparse = pack_sparse(quantise_sparse(values, mask, 64, true, {}).value()).value();
  const BlockMask all = prune_blockwise(values, 256, 1024, {}, 1).value();
  const PackedMatrix dense = pack_sparse(quantise_sparse(values, all, 64, true, {}).value()).value();
  EXPECT_EQ(sparse.codes.size() + sparse.scales.size() + sparse.minimums.size(),
            (dense.codes.size() + dense.scales.size() + dense.minimums.size()) / 2);
  EXPECT_LT(static_cast<double>(sparse.bytes()), 0.515 * static_cast<double>(dense.bytes()));
}

TEST(SparseMatrix, parts_that_do_not_fit_are_refused) {
  Random random(6, "refused");
  const SparseGroups good = make_groups({32, true}, random, 20, 70);
  EXPECT_TRUE(pack_sparse(good).has_value());
  const auto refused = [&](auto change) {
    SparseGroups bad = good;
    change(bad);
    return !pack_sparse(bad).has_value();
  };
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.codes[3] = 16; }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.codes.pop_back(); }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.scales.pop_back(); }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.zero_point = 8; }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.group = 16; }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.groups.format = Format::kInt8; }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.mask.kept.pop_back(); }));
  EXPECT_TRUE(refused([](SparseGroups& s) { s.mask.rows = 21; }));
}

}  // namespace
}  // namespace assay
