// What storing keys and values leaves in pages, read back by the layout's description, on every table.
#include <memory>

#include "kernels/kv_sequence.h"

namespace assay {
namespace {

using namespace kernels_test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Ordinary, tiny, subnormal, huge and special values.
float varied_value(Random& random) {
  switch (random.below(12)) {
    case 0:
      return static_cast<float>(random.normal()) * 0x1p-130F;
    case 1:
      return static_cast<float>(random.normal()) * 0x1p-16F;
    case 2:
      return static_cast<float>(random.normal()) * 0x1p60F;
    case 3:
      return static_cast<float>(random.normal()) * 400;
    case 4:
      return random.below(2) == 0 ? 0.0F : -0.0F;
    case 5:
      return random.below(2) == 0 ? kInfinity : -kInfinity;
    case 6:
      return kNan;
    default:
      return static_cast<float>(random.normal());
  }
}

double rounded(Format format, float x) {
  switch (format) {
    case Format::kF32:
      return x;
    case Format::kF16:
      return f16_bits_to_f32(f32_to_f16_bits(x));
    case Format::kBF16:
      return bf16_bits_to_f32(f32_to_bf16_bits(x));
    case Format::kFp8E4M3:
      return e4m3_bits_to_f32(f32_to_e4m3_bits(x));
    case Format::kFp8E5M2:
      return e5m2_bits_to_f32(f32_to_e5m2_bits(x));
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  return 0;
}

AttentionShape shape_of(int n_kv_heads, int head_dim) {
  return {.n_heads = n_kv_heads, .n_kv_heads = n_kv_heads, .head_dim = head_dim, .scale = 1};
}

TEST(StoreKv, float_formats_are_numerics_rounding) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    for (const Format format :
         {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kFp8E5M2}) {
      for (const int head_dim : {1, 7, 40, 64, 128}) {
        Random random(static_cast<uint64_t>(head_dim), "store floats");
        constexpr int kPositions = 75;
        Sequence sequence(shape_of(2, head_dim), format, format, 32, kPositions, random);
        for (const bool keys : {true, false}) {
          for (int p = 0; p < kPositions; ++p) {
            for (int d = 0; d < 2 * head_dim; ++d)
              sequence.original(keys, p, d / head_dim, d % head_dim) = varied_value(random);
          }
        }
        for (const auto& [first, n] : {std::pair{0, 1}, {1, 2}, {3, 40}, {43, 32}})
          sequence.store(*backend, first, n);
        for (int p = 0; p < kPositions; ++p) {
          for (int h = 0; h < 2; ++h) {
            for (int d = 0; d < head_dim; ++d) {
              const auto expect = [&](double stored, float x) {
                const double wanted = rounded(format, x);
                ASSERT_TRUE(std::isnan(wanted) ? std::isnan(stored) : stored == wanted)
                    << name(table->isa) << ", " << name(format) << ": " << x << " became " << stored;
              };
              expect(sequence.key(p, h, d), sequence.original(true, p, h, d));
              expect(sequence.value(p, h, d), sequence.original(false, p, h, d));
            }
          }
        }
      }
    }
  }
}

// int8 rounds to the nearest of its codes; int4 too, between a minimum and a scale that f16 rounds by 2^-11.
TEST(StoreKv, integer_formats_stay_within_half_a_step) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : {Format::kInt8, Format::kInt4}) {
      for (const int head_dim : {1, 7, 40, 64, 80, 256}) {
        Random random(static_cast<uint64_t>(head_dim), "store integers");
        constexpr int kPositions = 50;
        Sequence sequence(shape_of(2, head_dim), format, format, 16, kPositions, random);
        for (int p = 0; p < kPositions; ++p) {
          const auto offset = static_cast<float>(3 * random.normal());
          for (int d = 0; d < head_dim; ++d) sequence.original(true, p, 1, d) += offset;
        }
        sequence.store(*backend, 0, 13);
        sequence.store(*backend, 13, 37);
        for (const bool keys : {true, false}) {
          for (int p = 0; p < kPositions; ++p) {
            for (int i = 0; i < 2 * head_dim; ++i) {
              const int h = i / head_dim, d = i % head_dim;
              const double stored = keys ? sequence.key(p, h, d) : sequence.value(p, h, d);
              const double x = sequence.original(keys, p, h, d);
              const double step = sequence.scale(keys, p, h, d);
              const double minimum = std::abs(static_cast<double>(sequence.minimum(keys, p, h, d)));
              const double bound =
                  format == Format::kInt8 ? 0.501 * step : 0.51 * step + (minimum + 15 * step) * 0x1p-11;
              ASSERT_NEAR(stored, x, bound + 1e-7)
                  << name(table->isa) << ", " << name(format) << ", head_dim " << head_dim;
            }
            double largest = 0;
            for (int d = 0; d < head_dim; ++d)
              largest = std::max(largest, std::abs(static_cast<double>(sequence.original(keys, p, 0, d))));
            if (format == Format::kInt8) {
              ASSERT_FLOAT_EQ(sequence.scale(keys, p, 0, 0), static_cast<float>(largest / 127));
            }
          }
        }
      }
    }
  }
}

TEST(StoreKv, heads_that_no_scale_can_hold_become_nan_alone) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : {Format::kInt8, Format::kInt4}) {
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        Random random(3, "bad heads");
        Sequence sequence(shape_of(3, 64), format, format, 16, 20, random);
        for (const bool keys : {true, false}) sequence.original(keys, 17, 1, 5) = bad;
        sequence.store(*backend, 0, 20);
        for (int p = 0; p < 20; ++p) {
          for (int i = 0; i < 3 * 64; ++i) {
            ASSERT_EQ(std::isnan(sequence.key(p, i / 64, i % 64)), p == 17 && i / 64 == 1) << p << ", " << i;
            ASSERT_EQ(std::isnan(sequence.value(p, i / 64, i % 64)), p == 17 && i / 64 == 1) << p << ", " << i;
          }
        }
      }
    }
  }
}

// Heads of one value, of zeros and of subnormals have no range to scale.
TEST(StoreKv, heads_without_range_are_kept) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : {Format::kInt8, Format::kInt4}) {
      for (const float same : {0.0F, -0.0F, 0x1p-140F, 1.25F, -3.0F}) {
        Random random(3, "flat heads");
        Sequence sequence(shape_of(1, 64), format, format, 16, 3, random);
        for (const bool keys : {true, false}) {
          for (int i = 0; i < 3 * 64; ++i) sequence.original(keys, i / 64, 0, i % 64) = same;
        }
        sequence.store(*backend, 0, 3);
        for (int i = 0; i < 3 * 64; ++i) {
          ASSERT_NEAR(sequence.key(i / 64, 0, i % 64), same, std::abs(same) * 0x1p-11F + 0x1p-100F);
          ASSERT_NEAR(sequence.value(i / 64, 0, i % 64), same, std::abs(same) * 0x1p-11F + 0x1p-100F);
        }
      }
    }
  }
}

// Cells hold several positions of values: a store must not touch its neighbours, nor two threads one tile.
TEST(StoreKv, any_order_and_any_threads_leave_the_same_pages) {
  for (const KernelTable* table : tables()) {
    for (const Format format : kKvFormats) {
      Random random(4, "order");
      constexpr int kPositions = 70;
      Sequence at_once(shape_of(2, 48), format, format, 16, kPositions, random);
      Random again(4, "order");
      Sequence in_pieces(shape_of(2, 48), format, format, 16, kPositions, again);
      at_once.store(**make_cpu_backend(name(table->isa), 3), 0, kPositions);
      const auto single = *make_cpu_backend(name(table->isa), 1);
      for (int p = kPositions - 1; p >= 0; --p) in_pieces.store(*single, p, 1);
      for (int p = 0; p < kPositions; ++p) {
        for (int i = 0; i < 2 * 48; ++i) {
          ASSERT_EQ(at_once.key(p, i / 48, i % 48), in_pieces.key(p, i / 48, i % 48)) << name(format);
          ASSERT_EQ(at_once.value(p, i / 48, i % 48), in_pieces.value(p, i / 48, i % 48)) << name(format);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
