// Attention at its limits: long contexts, values that are not numbers or hardly so, and no work at all.
#include <array>
#include <memory>

#include "kernels/attention_oracle.h"

namespace assay {
namespace {

using namespace kernels_test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(AttentionLimits, context_of_128k_agrees_with_the_oracle) {
  constexpr int kPositions = 131072;
  const AttentionShape shape{.n_heads = 3, .n_kv_heads = 1, .head_dim = 32, .scale = 0.4F};
  for (const Format format : {Format::kBF16, Format::kInt8, Format::kInt4}) {
    for (const KernelTable* table : tables()) {
      Random random(31, "long");
      Sequence sequence(shape, format, format, 32, kPositions, random);
      const auto backend = *make_cpu_backend(name(table->isa), 2);
      sequence.store(*backend, 0, kPositions);
      const std::vector<float> queries = normals(random, 3 * 32);
      for (const int position : {0, 4095, 4096, 131071}) {
        const std::vector<float> output = attend(*backend, shape, sequence, queries, position, 1, position);
        const Expected e = expected_output(shape, sequence, queries.data() + 64, 2, position);
        for (int d = 0; d < 32; ++d) {
          ASSERT_NEAR(output[static_cast<size_t>(64 + d)], e.output[static_cast<size_t>(d)], e.bound)
              << name(table->isa) << ", " << name(format) << ", position " << position;
        }
      }
    }
  }
}

// A key or value that is no number spoils the queries that see it, and not a bit of the others.
TEST(AttentionLimits, nan_and_infinity_reach_only_queries_that_see_them) {
  constexpr int kPositions = 150, kBad = 70, kWindow = 40;
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : kKvFormats) {
      for (const bool in_keys : {true, false}) {
        for (const float bad : {kNan, kInfinity}) {
          const AttentionShape shape{
              .n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .scale = 0.2F, .window = kWindow};
          Random random(8, "not numbers");
          Sequence clean(shape, format, format, 16, kPositions, random);
          Random again(8, "not numbers");
          Sequence spoiled(shape, format, format, 16, kPositions, again);
          spoiled.original(in_keys, kBad, 1, 3) = bad;
          clean.store(*backend, 0, kPositions);
          spoiled.store(*backend, 0, kPositions);
          const std::vector<float> queries = normals(random, int64_t{kPositions} * 160);
          const auto expected = attend(*backend, shape, clean, queries, 0, kPositions);
          const auto found = attend(*backend, shape, spoiled, queries, 0, kPositions);
          for (int p = 0; p < kPositions; ++p) {
            for (int h = 0; h < 4; ++h) {
              const auto at = static_cast<size_t>(p * 160 + h * 40);
              const std::span<const float> row = std::span(found).subspan(at, 40);
              const std::string where = std::string(name(table->isa)) + ", " + std::string(name(format)) +
                                        (in_keys ? ", key " : ", value ") + std::to_string(bad) +
                                        ", position " + std::to_string(p) + ", head " + std::to_string(h);
              if (h < 2 || p < kBad || p >= kBad + kWindow) {
                ASSERT_TRUE(same_bits(row, std::span(expected).subspan(at, 40))) << where;
              } else if (std::isnan(bad) || is_integer(format)) {
                // A bad value spoils its dimension, and all dimensions where they share a scale.
                ASSERT_TRUE(std::isnan(row[3])) << where;
                const bool all = in_keys || is_integer(format);
                ASSERT_EQ(std::isnan(row[0]), all) << where;
              }
            }
          }
        }
      }
    }
  }
}

TEST(AttentionLimits, queries_that_are_no_numbers_give_nan_alone) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : kKvFormats) {
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        const AttentionShape shape{.n_heads = 3, .n_kv_heads = 1, .head_dim = 64, .scale = 0.125F};
        Random random(9, "bad queries");
        constexpr int kPositions = 1100, kFirst = 1040;  // more than two splits
        Sequence sequence(shape, format, format, 16, kPositions, random);
        sequence.store(*backend, 0, kPositions);
        std::vector<float> queries = normals(random, int64_t{kPositions - kFirst} * 192);
        const auto attend_last = [&] {
          return attend(*backend, shape, sequence, queries, kFirst, kPositions - kFirst, kFirst);
        };
        const auto expected = attend_last();
        const size_t row = 10 * 192 + 64;  // position 1050, head 1
        queries[row + 9] = bad;
        const auto found = attend_last();
        for (size_t i = 0; i < found.size(); ++i) {
          if (i >= row && i < row + 64) {
            ASSERT_TRUE(std::isnan(found[i])) << name(table->isa) << ", " << name(format) << ", " << bad;
          } else {
            ASSERT_TRUE(same_bits(found[i], expected[i])) << name(table->isa) << ", " << name(format);
          }
        }
      }
    }
  }
}

TEST(AttentionLimits, subnormal_and_huge_inputs_agree_with_the_oracle) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (const Format format : kKvFormats) {
      for (const auto& [queries_times, keys_times, values_times] :
           {std::array{0x1p-130F, 1.0F, 1.0F}, {1.0F, 0x1p-130F, 1.0F}, {1.0F, 1.0F, 0x1p-130F},
            {0x1p-60F, 0x1p-60F, 0x1p-60F}, {40.0F, 3.0F, 1.0F}, {0x1p-6F, 0x1p6F, 100.0F}}) {
        constexpr int kPositions = 90;
        const AttentionShape shape{.n_heads = 2, .n_kv_heads = 1, .head_dim = 48, .scale = 0.15F};
        Random random(12, "magnitudes");
        Sequence sequence(shape, format, format, 16, kPositions, random);
        for (int i = 0; i < kPositions * 48; ++i) {
          sequence.original(true, i / 48, 0, i % 48) *= keys_times;
          sequence.original(false, i / 48, 0, i % 48) *= values_times;
        }
        sequence.store(*backend, 0, kPositions);
        std::vector<float> queries = normals(random, int64_t{kPositions} * 96);
        for (float& q : queries) q *= queries_times;
        const auto output = attend(*backend, shape, sequence, queries, 0, kPositions);
        for (int p = 0; p < kPositions; p += 7) {
          const auto at = static_cast<size_t>(p * 96 + 48);
          const Expected e = expected_output(shape, sequence, queries.data() + at, 1, p);
          for (int d = 0; d < 48; ++d) {
            ASSERT_NEAR(output[at + static_cast<size_t>(d)], e.output[static_cast<size_t>(d)],
                        e.bound + 0x1p-126)
                << name(table->isa) << ", " << name(format) << ", queries * " << queries_times << ", keys * "
                << keys_times << ", values * " << values_times << ", position " << p;
          }
        }
      }
    }
  }
}

TEST(AttentionLimits, nothing_to_attend_writes_nothing) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    const AttentionShape shape{.n_heads = 2, .n_kv_heads = 1, .head_dim = 64, .scale = 1};
    backend->attention(shape, {});
    Random random(1, "nothing");
    Sequence sequence(shape, Format::kInt4, Format::kInt4, 16, 1, random);
    sequence.store(*backend, 0, 0);
    EXPECT_TRUE(attend(*backend, shape, sequence, {}, 0, 0).empty());
  }
}

// The first position, the last of a page and the first of the next.
TEST(AttentionLimits, page_borders_agree_with_the_oracle) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    for (const Format format : kKvFormats) {
      for (const int page_tokens : {16, 32, 48}) {
        const AttentionShape shape{.n_heads = 3, .n_kv_heads = 3, .head_dim = 64, .scale = 0.125F};
        for (const int n : {1, page_tokens, page_tokens + 1, 64, 65}) {
          Random random(static_cast<uint64_t>(n), "borders");
          Sequence sequence(shape, format, format, page_tokens, n, random);
          sequence.store(*backend, 0, n);
          const std::vector<float> queries = normals(random, 192);
          const auto output = attend(*backend, shape, sequence, queries, n - 1, 1, n - 1);
          const Expected e = expected_output(shape, sequence, queries.data() + 64, 1, n - 1);
          for (int d = 0; d < 64; ++d) {
            ASSERT_NEAR(output[static_cast<size_t>(64 + d)], e.output[static_cast<size_t>(d)], e.bound)
                << name(table->isa) << ", " << name(format) << ", " << n << " positions";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
