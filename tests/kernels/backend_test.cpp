// The CPU backend: choice of a table, fused operations against their parts, and the cut of a matmul.
#include "kernels/backend.h"

#include <algorithm>
#include <memory>

#include "kernels/fixtures.h"
#include "kernels/work_split.h"

namespace assay {
namespace {

using namespace kernels_test;

// A forced table that this CPU cannot run skips the whole program, in a line that ctest looks for.
class NeedsTable final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (tables().empty()) GTEST_SKIP() << "this CPU cannot run the table that ASSAY_ISA names";
  }
};
const ::testing::Environment* const needs_table = ::testing::AddGlobalTestEnvironment(new NeedsTable);

std::span<const std::byte> bytes_of(const void* data, int64_t n) {
  return {static_cast<const std::byte*>(data), static_cast<size_t>(n)};
}

// All that a view says, copied.
struct Contents {
  std::vector<std::byte> values, scales, sums;
  bool operator==(const Contents&) const = default;
};
Contents contents(const ActivationView& view) {
  const auto copy = [](std::span<const std::byte> bytes) {
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const int64_t n = view.n_rows * view.stride;
  Contents c;
  c.values = copy(bytes_of(view.values, n * bits(view.format) / 8));
  if (view.format == Format::kInt8) {
    c.scales = copy(bytes_of(view.scales, n / 32 * 4));
    c.sums = copy(bytes_of(view.sums, n / 16 * 4));
  }
  return c;
}

TEST(Backend, fused_operations_equal_their_parts_to_the_bit) {
  Random random(1, "fused");
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    for (const Format format : {Format::kF32, Format::kBF16, Format::kInt8}) {
      for (const int64_t n : {int64_t{1}, int64_t{576}, random.between(500, 1400)}) {
        const int64_t rows = random.between(1, 30);
        const std::vector<float> x = normals(random, rows * n), up = normals(random, rows * n),
                                 w = normals(random, n);
        ActivationBuffer a = *ActivationBuffer::create(rows, n), b = *ActivationBuffer::create(rows, n);
        std::vector<float> y(x.size());
        backend->rms_norm(x.data(), w.data(), rows, n, 1e-6F, y.data());
        EXPECT_EQ(contents(backend->rms_norm_prepare(format, x.data(), w.data(), rows, n, 1e-6F, a)),
                  contents(backend->prepare(format, y.data(), rows, n, b)))
            << name(table->isa) << ", " << name(format) << ", " << n;
        for (int64_t r = 0; r < rows; ++r) {
          table->gate(GateFunction::kGelu, x.data() + r * n, up.data() + r * n, n, y.data() + r * n);
        }
        EXPECT_EQ(
            contents(backend->gate_prepare(format, GateFunction::kGelu, x.data(), up.data(), n, rows, n, a)),
            contents(backend->prepare(format, y.data(), rows, n, b)))
            << name(table->isa) << ", " << name(format) << ", " << n;
      }
    }
  }
}

TEST(Backend, embed_copies_rows_of_the_table) {
  Random random(2, "embed");
  const PackedMatrix matrix = *pack_floats(normals(random, 40 * 50), 40, 50, Format::kF16);
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    const std::vector<int32_t> tokens = {39, 0, 17, 17};
    std::vector<float> y(4 * 50), row(50);
    backend->embed(matrix, tokens, y.data());
    for (size_t i = 0; i < tokens.size(); ++i) {
      unpack_row(matrix, tokens[i], row);
      EXPECT_TRUE(same_bits(std::span(y).subspan(50 * i, 50), row));
    }
  }
}

TEST(Backend, add_and_rope_cover_every_row) {
  Random random(3, "add");
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 3);
    const std::vector<float> x = normals(random, 50001), y = normals(random, 50001);
    std::vector<float> sum = x;
    backend->add(sum.data(), y.data(), 50001);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum[i], x[i] + y[i]);

    constexpr int64_t kRows = 40, kStride = 4 * 64 + 8;
    const std::vector<float> cosines = normals(random, kRows * 32), sines = normals(random, kRows * 32);
    const std::vector<float> before = normals(random, kRows * kStride);
    std::vector<float> rotated = before, expected = before;
    backend->rope(rotated.data(), kRows, kStride, 4, 64, 32, cosines.data(), sines.data(),
                  RopeStyle::kHalves);
    for (int64_t r = 0; r < kRows; ++r) {
      table->rope(expected.data() + r * kStride, 4, 64, 32, cosines.data() + r * 32, sines.data() + r * 32,
                  RopeStyle::kHalves);
    }
    EXPECT_TRUE(same_bits(rotated, expected));
    EXPECT_FALSE(same_bits(rotated, before));
  }
}

TEST(MakeCpuBackend, names_the_table_and_refuses_what_it_cannot_run) {
  const auto portable = make_cpu_backend("portable", 2);
  ASSERT_TRUE(portable.has_value());
  EXPECT_EQ((*portable)->name(), "cpu portable, 2 threads");
  EXPECT_EQ((*portable)->n_threads(), 2);
  EXPECT_EQ((*portable)->communicator().size(), 1);
  EXPECT_EQ(make_cpu_backend("sse9").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(make_cpu_backend("portable", -1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(make_cpu_backend("portable", 100000).error().code, ErrorCode::kInvalidArgument);
  for (int i = 0; i < static_cast<int>(Isa::kCount); ++i) {
    const auto isa = static_cast<Isa>(i);
    if (kernel_table(isa) == nullptr) {
      EXPECT_EQ(make_cpu_backend(name(isa)).error().code, ErrorCode::kUnsupported);
    }
  }
}

TEST(MakeCpuBackend, environment_forces_the_table) {
  const char* before = std::getenv("ASSAY_ISA");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("ASSAY_ISA", "portable", 1);
  EXPECT_EQ((*make_cpu_backend("auto", 1))->name(), "cpu portable, 1 thread");
  ::setenv("ASSAY_ISA", "nonsense", 1);
  EXPECT_EQ(make_cpu_backend("auto", 1).error().code, ErrorCode::kInvalidArgument);
  if (before == nullptr) {
    ::unsetenv("ASSAY_ISA");
  } else {
    ::setenv("ASSAY_ISA", kept.c_str(), 1);
  }
}

TEST(CutMatmul, covers_every_row_and_tile_exactly_once) {
  Random random(4, "cut");
  for (int round = 0; round < 300; ++round) {
    PackedMatrix w;
    w.n_outputs = random.between(1, 3000);
    w.n_inputs = w.padded_inputs = 64;
    MatmulTask task{.weights = &w};
    task.input.n_rows = random.below(2) == 0 ? random.between(0, 3) : random.between(0, 700);
    const MatmulGrid grid =
        cut_matmul(task, w.n_tiles() + random.between(0, 300), static_cast<int>(random.between(1, 64)));
    std::vector<int> covered(static_cast<size_t>(task.input.n_rows * w.n_tiles()));
    for (int64_t i = 0; i < grid.n_blocks(); ++i) {
      const MatmulBlock b = grid.block(i);
      ASSERT_TRUE(b.n_rows > 0 && b.first_row >= 0 && b.first_row + b.n_rows <= task.input.n_rows);
      ASSERT_TRUE(b.n_tiles > 0 && b.first_tile >= 0 && b.first_tile + b.n_tiles <= w.n_tiles());
      for (int64_t r = b.first_row; r < b.first_row + b.n_rows; ++r) {
        for (int64_t t = 0; t < b.n_tiles; ++t)
          ++covered[static_cast<size_t>(r * w.n_tiles() + b.first_tile + t)];
      }
    }
    ASSERT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<int64_t>(covered.size()));
  }
}

}  // namespace
}  // namespace assay
