// Row operations of every table against double precision, and conversions against numeric, bit for bit.
#include <algorithm>
#include <bit>
#include <memory>

#include "kernels/fixtures.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"

namespace assay {
namespace {

using namespace kernels_test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RmsScale, agrees_with_double_precision) {
  Random random(1, "rms");
  for (const KernelTable* table : tables()) {
    for (int round = 0; round < 200; ++round) {
      const int64_t n = random.between(1, 700);
      const std::vector<float> x = normals(random, n, std::exp(random.uniform(-5, 5)));
      double sum = 0;
      for (const float v : x) sum += static_cast<double>(v) * v;
      const double expected = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-5F);
      // All terms are positive: the sum is off by n eps relatively, the root by half of that.
      const double bound = (static_cast<double>(n) / 2 + 4) * kEpsilon * expected;
      ASSERT_NEAR(table->rms_scale(x.data(), n, 1e-5F), expected, bound) << name(table->isa) << ", n " << n;
    }
  }
}

TEST(ScaleBy, is_two_rounded_products) {
  Random random(2, "scale_by");
  for (const KernelTable* table : tables()) {
    for (int64_t n = 0; n < 70; ++n) {
      const std::vector<float> x = normals(random, n), w = normals(random, n);
      std::vector<float> y(static_cast<size_t>(n) + 1, 7);
      table->scale_by(x.data(), 0.3F, w.data(), n, y.data());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(same_bits(y[i], x[i] * 0.3F * w[i])) << name(table->isa);
      ASSERT_EQ(y.back(), 7);
    }
  }
}

TEST(Add, is_one_rounded_sum) {
  Random random(3, "add");
  for (const KernelTable* table : tables()) {
    for (int64_t n = 0; n < 70; ++n) {
      const std::vector<float> x = normals(random, n), y = normals(random, n);
      std::vector<float> sum = x;
      sum.push_back(7);
      table->add(sum.data(), y.data(), n);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same_bits(sum[i], x[i] + y[i])) << name(table->isa);
      ASSERT_EQ(sum.back(), 7);
    }
  }
}

double exact_gate(GateFunction function, double x) {
  if (function == GateFunction::kSilu) return x / (1 + std::exp(-x));
  const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

TEST(Gate, agrees_with_double_precision) {
  Random random(4, "gate");
  for (const KernelTable* table : tables()) {
    for (const GateFunction function : {GateFunction::kSilu, GateFunction::kGelu}) {
      for (int round = 0; round < 200; ++round) {
        const int64_t n = random.between(1, 100);
        const std::vector<float> g = normals(random, n, random.uniform(0.1, 8)), up = normals(random, n);
        std::vector<float> y(static_cast<size_t>(n) + 1, 7);
        table->gate(function, g.data(), up.data(), n, y.data());
        for (size_t i = 0; i < g.size(); ++i) {
          const double expected = exact_gate(function, g[i]) * up[i];
          // exp's argument u is rounded to a few eps, which exp turns into |u| eps of its result, and the
          // exponential counts fully for very negative x. Gelu's argument has five more roundings.
          const double u =
              std::abs(static_cast<double>(g[i])) * (1 + 0.0714 * static_cast<double>(g[i]) * g[i]);
          const double argument =
              function == GateFunction::kSilu ? std::abs(static_cast<double>(g[i])) : 1.6 * u;
          const double bound = (12 + 6 * argument) * kEpsilon * std::abs(expected) + 1e-36;
          // gelu computed in double by tanh cancels for negative x: its own error is 2^-53 of x.
          ASSERT_NEAR(y[i], expected, bound + 0x1p-50 * std::abs(static_cast<double>(g[i]) * up[i]))
              << name(table->isa) << ", x " << g[i];
        }
        ASSERT_EQ(y.back(), 7);
      }
    }
  }
}

TEST(Gate, silu_ends_and_special_values) {
  for (const KernelTable* table : tables()) {
    const std::vector<float> g = {-1000, 1000, 0, -kInfinity, kInfinity, kNan}, up(6, 1);
    std::vector<float> y(6);
    table->gate(GateFunction::kSilu, g.data(), up.data(), 6, y.data());
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 1000);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[4], kInfinity);
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

// softmax([0, x]) is 1 / (1 + e^x) and e^x / (1 + e^x): over a dense range that is exp itself.
TEST(Softmax, exponential_is_within_two_ulp) {
  for (const KernelTable* table : tables()) {
    double worst = 0;
    for (int i = 0; i < 200000; ++i) {
      const float x = -87.0F * static_cast<float>(i) / 200000.0F;
      float pair[2] = {0, x};
      table->softmax(pair, 2);
      const double e = std::exp(static_cast<double>(x));
      const double expected = e / (1 + e);
      worst = std::max(worst, std::abs(pair[1] - expected) / (expected * 2 * kEpsilon));
    }
    // Two ulp of exp, one each for the sum and the quotient, counted in 2^-23.
    EXPECT_LE(worst, 4) << name(table->isa);
    EXPECT_GT(worst, 0);
  }
}

TEST(Softmax, agrees_with_double_precision) {
  Random random(5, "softmax");
  for (const KernelTable* table : tables()) {
    for (int round = 0; round < 200; ++round) {
      const int64_t n = random.between(1, 300);
      std::vector<float> x = normals(random, n, 5), y = x;
      y.push_back(7);
      table->softmax(y.data(), n);
      const double largest = *std::max_element(x.begin(), x.end());
      double sum = 0;
      for (const float v : x) sum += std::exp(v - largest);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = std::exp(x[i] - largest) / sum;
        // x - max is rounded: an error of |x - max| eps in the exponent.
        const double bound =
            (static_cast<double>(n) + 16 + 2 * std::abs(x[i] - largest)) * kEpsilon * expected + 1e-37;
        ASSERT_NEAR(y[i], expected, bound) << name(table->isa);
      }
      ASSERT_EQ(y.back(), 7);
    }
  }
}

TEST(Argmax, finds_the_first_largest_and_ignores_nan) {
  Random random(6, "argmax");
  for (const KernelTable* table : tables()) {
    EXPECT_EQ(table->argmax(nullptr, 0), 0);
    const std::vector<float> all_nan(20, kNan), ends = {-kInfinity, kInfinity, kNan};
    EXPECT_EQ(table->argmax(all_nan.data(), 20), 0);
    EXPECT_EQ(table->argmax(ends.data(), 3), 1);
    for (int round = 0; round < 300; ++round) {
      const int64_t n = random.between(1, 100);
      std::vector<float> x;
      for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(random.between(-9, 9)));  // many equal
      for (float& v : x) v = random.below(8) == 0 ? kNan : v;
      int64_t expected = -1;
      for (int64_t i = 0; i < n; ++i) {
        const float v = x[static_cast<size_t>(i)];
        if (!std::isnan(v) && (expected < 0 || v > x[static_cast<size_t>(expected)])) expected = i;
      }
      ASSERT_EQ(table->argmax(x.data(), n), std::max<int64_t>(expected, 0)) << name(table->isa);
    }
  }
}

TEST(Rope, rotates_both_styles_as_written) {
  Random random(7, "rope");
  for (const KernelTable* table : tables()) {
    for (const RopeStyle style : {RopeStyle::kAdjacentPairs, RopeStyle::kHalves}) {
      for (int round = 0; round < 100; ++round) {
        const int heads = static_cast<int>(random.between(1, 4)),
                  dim = static_cast<int>(random.between(1, 130));
        const int pairs = static_cast<int>(random.between(0, dim / 2));
        const std::vector<float> x = normals(random, int64_t{heads} * dim);
        std::vector<float> cosines, sines, y = x;
        for (int i = 0; i < pairs; ++i) {
          const double angle = random.uniform(0, 6.3);
          cosines.push_back(static_cast<float>(std::cos(angle)));
          sines.push_back(static_cast<float>(std::sin(angle)));
        }
        table->rope(y.data(), heads, dim, pairs, cosines.data(), sines.data(), style);
        std::vector<float> expected = x;
        for (int h = 0; h < heads; ++h) {
          for (int i = 0; i < pairs; ++i) {
            const auto base = static_cast<size_t>(h * dim), j = static_cast<size_t>(i);
            const size_t first = base + (style == RopeStyle::kHalves ? j : 2 * j);
            const size_t second =
                base + (style == RopeStyle::kHalves ? j + static_cast<size_t>(pairs) : 2 * j + 1);
            expected[first] = x[first] * cosines[j] - x[second] * sines[j];
            expected[second] = x[first] * sines[j] + x[second] * cosines[j];
          }
        }
        ASSERT_TRUE(same_bits(y, expected)) << name(table->isa) << ", dim " << dim << ", pairs " << pairs;
      }
    }
  }
}

std::vector<float> varied(Random& random, int64_t n) {
  std::vector<float> x = normals(random, n, std::exp(random.uniform(-30, 30)));
  for (float& v : x) {
    switch (random.below(12)) {
      case 0:
        v = std::bit_cast<float>(static_cast<uint32_t>(random.next()));  // anything: subnormal, NaN, infinity
        break;
      case 1:
        v = 0;
        break;
      default:
        break;
    }
  }
  return x;
}

TEST(ToBf16, is_numerics_rounding_for_every_kind_of_value) {
  Random random(8, "bf16");
  for (const KernelTable* table : tables()) {
    for (int round = 0; round < 300; ++round) {
      const int64_t n = random.between(0, 100);
      const std::vector<float> x = varied(random, n);
      std::vector<uint16_t> y(static_cast<size_t>(n) + 1, 7);
      table->to_bf16(x.data(), n, y.data());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], f32_to_bf16_bits(x[i])) << name(table->isa) << ", " << x[i];
      ASSERT_EQ(y.back(), 7);
    }
  }
}

struct Quantised {
  std::vector<int8_t> codes;
  float scale;
};

// The rule of kernel_table.h in scalars.
Quantised quantised(std::span<const float> x) {
  float largest = 0;
  bool finite = true;
  for (const float v : x) {
    finite = finite && std::isfinite(v);
    largest = std::max(largest, std::abs(v));
  }
  Quantised q{std::vector<int8_t>(x.size(), 0), 0};
  if (!finite || largest >= 0x1p100F) {
    q.scale = kNan;
  } else if (largest >= 0x1p-100F) {
    q.scale = std::bit_cast<float>(std::bit_cast<uint32_t>(largest / 127.0F) & ~3U);
    const float inverse = 127.0F / largest;
    for (size_t i = 0; i < x.size(); ++i) q.codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  }
  return q;
}

TEST(Quantise, follows_the_rule_bit_for_bit) {
  Random random(10, "quantise");
  for (const KernelTable* table : tables()) {
    for (int round = 0; round < 500; ++round) {
      const int64_t n = 32 * random.between(1, 6);
      std::vector<float> x =
          random.below(2) == 0 ? varied(random, n) : normals(random, n, std::exp(random.uniform(-80, 80)));
      std::vector<int8_t> codes(static_cast<size_t>(n));
      std::vector<float> scales(static_cast<size_t>(n / 32));
      std::vector<int32_t> sums(static_cast<size_t>(n / 16));
      table->quantise(x.data(), n, codes.data(), scales.data(), sums.data());
      for (size_t g = 0; g < scales.size(); ++g) {
        const Quantised q = quantised(std::span(x).subspan(32 * g, 32));
        ASSERT_TRUE(std::isnan(q.scale) ? std::isnan(scales[g]) : same_bits(scales[g], q.scale))
            << name(table->isa);
        int32_t halves[2] = {0, 0};
        for (size_t i = 0; i < 32; ++i) {
          ASSERT_EQ(codes[32 * g + i], q.codes[i]) << name(table->isa) << ", " << x[32 * g + i];
          halves[i / 16] += q.codes[i];
        }
        ASSERT_EQ(sums[2 * g], halves[0]);
        ASSERT_EQ(sums[2 * g + 1], halves[1]);
      }
    }
  }
}

}  // namespace
}  // namespace assay
