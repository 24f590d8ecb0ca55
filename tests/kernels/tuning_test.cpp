// The kept choice of cuts and kernels, and that no choice of cuts changes a result.
#include "kernels/tuning.h"

#include <cmath>
#include <memory>

#include "kernels/activations.h"
#include "kernels/cpu_backend.h"
#include "kernels/fixtures.h"
#include "kernels/packed_matrix.h"
#include "numeric/bfloat16.h"

namespace assay {
namespace {

using namespace kernels_test;

CpuInfo some_cpu() {
  CpuInfo cpu;
  cpu.vendor = "GenuineIntel";
  cpu.model = "Some Processor";
  cpu.family = 6;
  cpu.model_number = 207;
  cpu.stepping = 2;
  return cpu;
}

TEST(Tuning, kept_text_is_read_back) {
  for (const Tuning& tuning : {Tuning{}, Tuning{66, 24, true}, Tuning{264, 6, false}}) {
    const Result<Tuning> read =
        parse_tuning(tuning_text(tuning, some_cpu(), Isa::kAvx512), some_cpu(), Isa::kAvx512);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, tuning);
  }
}

TEST(Tuning, text_of_another_cpu_table_or_form_is_refused) {
  const std::string text = tuning_text({}, some_cpu(), Isa::kAvx512);
  CpuInfo other = some_cpu();
  other.stepping = 3;
  EXPECT_FALSE(parse_tuning(text, other, Isa::kAvx512));
  EXPECT_FALSE(parse_tuning(text, some_cpu(), Isa::kAvx2));
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(parse_tuning(text.substr(0, n), some_cpu(), Isa::kAvx512));
  EXPECT_FALSE(parse_tuning(text + "x", some_cpu(), Isa::kAvx512));
  std::string odd = text;
  odd.replace(odd.find("132"), 3, "131");
  EXPECT_FALSE(parse_tuning(odd, some_cpu(), Isa::kAvx512));
}

TEST(Tuning, a_measured_choice_can_be_kept_and_read) {
  for (const KernelTable* table : tables()) {
    const Tuning measured = measure_tuning(*table);
    const Result<Tuning> read =
        parse_tuning(tuning_text(measured, some_cpu(), table->isa), some_cpu(), table->isa);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, measured);
    EXPECT_TRUE(!measured.bf16_pairs || table->matmul_bf16_pairs != nullptr);
  }
}

struct Bf16Product {
  int64_t rows, inputs, outputs;
  std::vector<float> weights, x;

  std::vector<float> run(const KernelTable& table, const Tuning& tuning, int64_t first, int64_t n) const {
    const auto backend = *CpuBackend::create(table, {.n_threads = 2}, tuning);
    const PackedMatrix w = *pack_floats(weights, outputs, inputs, Format::kBF16);
    ActivationBuffer buffer = *ActivationBuffer::create(n, inputs);
    const ActivationView view = backend->prepare(Format::kBF16, x.data() + first * inputs, n, inputs, buffer);
    std::vector<float> y(static_cast<size_t>(n * outputs));
    const MatmulTask task{&w, view, y.data(), outputs, false, nullptr};
    backend->matmul({&task, 1});
    return y;
  }
};

Bf16Product make_product(Random& random) {
  Bf16Product p{random.between(1, 300), random.between(1, 700), random.between(1, 300), {}, {}};
  p.weights = normals(random, p.outputs * p.inputs);
  p.x = normals(random, p.rows * p.inputs);
  return p;
}

TEST(Tuning, cuts_do_not_change_a_bit) {
  Random random(1, "tuning_cuts");
  for (const KernelTable* table : tables()) {
    const Bf16Product p = make_product(random);
    const std::vector<float> expected = p.run(*table, {}, 0, p.rows);
    for (const int64_t rows : {66, 264}) {
      for (const int64_t tiles : {6, 24}) {
        ASSERT_TRUE(same_bits(p.run(*table, {rows, tiles, false}, 0, p.rows), expected)) << name(table->isa);
      }
    }
  }
}

TEST(Bf16Pairs, are_within_rounding_of_the_sum_and_alike_in_any_batch) {
  Random random(2, "bf16_pairs");
  for (const KernelTable* table : tables()) {
    if (table->matmul_bf16_pairs == nullptr) continue;
    for (int round = 0; round < 10; ++round) {
      const Bf16Product p = make_product(random);
      const Tuning pairs{132, 12, true};
      const std::vector<float> y = p.run(*table, pairs, 0, p.rows);
      const int64_t first = random.between(0, p.rows - 1), n = random.between(1, p.rows - first);
      ASSERT_TRUE(same_bits(
          p.run(*table, pairs, first, n),
          std::span(y).subspan(static_cast<size_t>(first * p.outputs), static_cast<size_t>(n * p.outputs))));
      for (int64_t r = 0; r < p.rows; ++r) {
        for (int64_t o = 0; o < p.outputs; ++o) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < p.inputs; ++k) {
            const auto bf16 = [](float v) { return double{bf16_bits_to_f32(f32_to_bf16_bits(v))}; };
            const double term = bf16(p.weights[static_cast<size_t>(o * p.inputs + k)]) *
                                bf16(p.x[static_cast<size_t>(r * p.inputs + k)]);
            sum += term;
            magnitude += std::abs(term);
          }
          // Two roundings a pair, each at most eps of what has been summed; flushed subnormals below 2^-126.
          const double bound = static_cast<double>(p.inputs + 8) * (kEpsilon * magnitude + 0x1p-120);
          ASSERT_NEAR(y[static_cast<size_t>(r * p.outputs + o)], sum, bound) << r << ", " << o;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
