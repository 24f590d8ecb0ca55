// Attention and the KV pages of every table against a plain softmax in double precision.
#include <algorithm>
#include <memory>

#include "kernels/attention_oracle.h"

namespace assay {
namespace {

using namespace kernels_test;

struct Setting {
  AttentionShape shape;
  Format key = Format::kF32, value = Format::kF32;
  int page_tokens = 16;
};

Setting random_setting(Random& random) {
  constexpr int kDims[] = {32, 64, 80, 96, 128, 256, 7, 33, 192, 1};
  Setting s;
  s.shape.n_kv_heads = static_cast<int>(random.between(1, 3));
  s.shape.n_heads = s.shape.n_kv_heads * static_cast<int>(random.between(1, 8));
  s.shape.head_dim = kDims[random.below(std::size(kDims))];
  s.shape.scale = 1 / std::sqrt(static_cast<float>(s.shape.head_dim));
  s.shape.window = random.below(3) == 0 ? static_cast<int>(random.between(1, 150)) : 0;
  s.shape.soft_cap = random.below(4) == 0 ? 2.0F : 0.0F;
  s.key = kKvFormats[random.below(std::size(kKvFormats))];
  s.value = kKvFormats[random.below(std::size(kKvFormats))];
  s.page_tokens = random.below(2) == 0 ? 16 : 32;
  return s;
}

TEST(Attention, agrees_with_softmax_in_double_precision) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    Random random(2, "attention");
    for (int round = 0; round < 40; ++round) {
      const Setting s = random_setting(random);
      const int n = static_cast<int>(random.between(1, 200));
      SCOPED_TRACE(std::string(name(table->isa)) + ", head_dim " + std::to_string(s.shape.head_dim) + ", " +
                   std::to_string(n) + " positions, window " + std::to_string(s.shape.window) + ", keys " +
                   std::string(name(s.key)) + ", values " + std::string(name(s.value)));
      Sequence sequence(s.shape, s.key, s.value, s.page_tokens, n, random);
      sequence.store(*backend, 0, n);
      const std::vector<float> queries = normals(random, int64_t{n} * s.shape.n_heads * s.shape.head_dim);
      const std::vector<float> output = attend(*backend, s.shape, sequence, queries, 0, n);
      for (int p = n - 1; p >= 0; p -= 11) {  // of every remainder, over rounds
        for (int h = 0; h < s.shape.n_heads; ++h) {
          const auto at = static_cast<size_t>((int64_t{p} * s.shape.n_heads + h) * s.shape.head_dim);
          const Expected e = expected_output(s.shape, sequence, queries.data() + at, h, p);
          for (int d = 0; d < s.shape.head_dim; ++d) {
            ASSERT_NEAR(output[at + static_cast<size_t>(d)], e.output[static_cast<size_t>(d)], e.bound)
                << "position " << p << ", head " << h << ", dimension " << d;
          }
        }
      }
    }
  }
}

// However a prompt is cut, with whatever page size, every query's result has the same bits.
TEST(Attention, pieces_and_page_sizes_are_bit_identical) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    for (int round = 0; round < 14; ++round) {
      Random random(static_cast<uint64_t>(100 + round), "pieces");
      Setting s = random_setting(random);
      s.key = s.value = kKvFormats[round % 7];
      const int n = static_cast<int>(random.between(1, 300));
      SCOPED_TRACE(std::string(name(table->isa)) + ", round " + std::to_string(round));
      const int64_t width = int64_t{s.shape.n_heads} * s.shape.head_dim;
      const std::vector<float> queries = normals(random, n * width);
      std::vector<float> whole;
      for (const int page_tokens : {16, 32}) {
        Sequence sequence(s.shape, s.key, s.value, page_tokens, n, random);
        sequence.draw(static_cast<uint64_t>(round), n);
        std::vector<float> joined;
        for (int first = 0; first < n;) {
          const int piece = page_tokens == 16 && whole.empty()
                                ? n
                                : static_cast<int>(std::min<int64_t>(n - first, random.between(1, 60)));
          sequence.store(*backend, first, piece);  // later keys do not exist yet
          const std::vector<float> part = attend(*backend, s.shape, sequence, queries, first, piece);
          joined.insert(joined.end(), part.begin(), part.end());
          first += piece;
        }
        if (whole.empty()) whole = joined;
        ASSERT_TRUE(same_bits(joined, whole)) << "pages of " << page_tokens;
      }
    }
  }
}

// Long contexts: decoding by splits on several threads against prefill on one, over more than two splits.
TEST(Attention, splits_and_threads_are_bit_identical) {
  for (const KernelTable* table : tables()) {
    for (const Format format : kKvFormats) {
      for (const int window : {0, 1100}) {
        Random random(5, "splits");
        const AttentionShape shape{
            .n_heads = 6, .n_kv_heads = 2, .head_dim = 32, .scale = 0.2F, .window = window};
        constexpr int kPositions = 2 * kKeySplit + 300, kWidth = 6 * 32;
        Sequence sequence(shape, format, format, 16, kPositions, random);
        const auto single = *make_cpu_backend(name(table->isa), 1);
        sequence.store(*single, 0, kPositions);
        constexpr int kQueries = 40;  // more rows than one block holds, so one thread takes them without splits
        constexpr int kFirst = kPositions - kQueries;
        const std::vector<float> queries = normals(random, int64_t{kQueries} * kWidth);
        const std::vector<float> together =
            attend(*single, shape, sequence, queries, kFirst, kQueries, kFirst);
        for (const int n_threads : {1, 2, 3}) {
          const auto backend = *make_cpu_backend(name(table->isa), n_threads);
          for (int q = 0; q < kQueries; q += 13) {
            const std::vector<float> alone =
                attend(*backend, shape, sequence, queries, kFirst + q, 1, kFirst);
            ASSERT_TRUE(
                same_bits(alone, std::span(together).subspan(static_cast<size_t>(q) * kWidth, kWidth)))
                << name(table->isa) << ", " << name(format) << ", threads " << n_threads << ", query " << q
                << ", window " << window;
          }
        }
        const Expected e = expected_output(shape, sequence, queries.data(), 0, kFirst);
        for (int d = 0; d < 32; ++d)
          ASSERT_NEAR(together[static_cast<size_t>(d)], e.output[static_cast<size_t>(d)], e.bound);
      }
    }
  }
}

TEST(Attention, tasks_of_a_batch_do_not_see_each_other) {
  for (const KernelTable* table : tables()) {
    Random random(6, "batch");
    const AttentionShape shape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 64, .scale = 0.125F};
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<std::vector<float>> queries, outputs;
    std::vector<AttentionTask> tasks;
    const auto backend = *make_cpu_backend(name(table->isa), 2);
    for (const int n : {1, 70, 0, 200}) {
      sequences.push_back(
          std::make_unique<Sequence>(shape, Format::kF32, Format::kF32, 16, std::max(n, 1), random));
      sequences.back()->store(*backend, 0, n);
      queries.push_back(normals(random, int64_t{n} * 384));
      outputs.emplace_back(queries.back().size());
      tasks.push_back(
          {queries.back().data(), 384, outputs.back().data(), 384, n, 0, sequences.back()->view()});
    }
    backend->attention(shape, tasks);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const std::vector<float> alone =
          attend(*backend, shape, *sequences[i], queries[i], 0, tasks[i].n_queries);
      ASSERT_TRUE(same_bits(outputs[i], alone)) << name(table->isa) << ", task " << i;
    }
  }
}

}  // namespace
}  // namespace assay
