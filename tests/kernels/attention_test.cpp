// Attention and the KV pages of every table against a plain softmax in double precision.
#include <algorithm>
#include <memory>
#include <numeric>

#include "kernels/backend.h"
#include "kernels/fixtures.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"

namespace assay {
namespace {

using namespace kernels_test;

// One sequence in shuffled pages, the unused rest filled with NaN: reading it would show.
class Sequence {
 public:
  Sequence(const AttentionShape& shape, Format key, Format value, int page_tokens, int n_positions,
           Random& random)
      : shape_(shape) {
    const int n_blocks = (n_positions + page_tokens - 1) / page_tokens;
    blocks_.resize(static_cast<size_t>(n_blocks));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    for (size_t i = blocks_.size(); i > 1; --i) std::swap(blocks_[i - 1], blocks_[random.below(i)]);
    view_ = {.key_offset = 64,
             .key_format = key,
             .value_format = value,
             .page_tokens = page_tokens,
             .n_kv_heads = shape.n_kv_heads,
             .head_dim = shape.head_dim};
    view_.value_offset = 64 + kv_plane_bytes(key, shape.n_kv_heads, page_tokens, shape.head_dim);
    view_.block_bytes =
        view_.value_offset + kv_plane_bytes(value, shape.n_kv_heads, page_tokens, shape.head_dim);
    memory_ = *AlignedBuffer::allocate(view_.block_bytes * blocks_.size());
    std::memset(memory_.data(), 0xff, memory_.size());
    view_.base = memory_.data();
    view_.blocks = blocks_.data();
    const int64_t width = int64_t{shape.n_kv_heads} * shape.head_dim;
    keys_ = normals(random, n_positions * width);
    values_ = normals(random, n_positions * width);
  }

  // Other keys and values, from a stream of their own.
  void draw(uint64_t seed, int n_positions) {
    Random random(seed, "keys and values");
    const int64_t n = int64_t{n_positions} * shape_.n_kv_heads * shape_.head_dim;
    keys_ = normals(random, n);
    values_ = normals(random, n);
  }

  void store(Backend& backend, int first, int n) {
    const int64_t width = int64_t{shape_.n_kv_heads} * shape_.head_dim;
    backend.store_kv(view_, keys_.data() + first * width, values_.data() + first * width, width, n, first);
  }

  const KvView& view() const { return view_; }
  // As stored: read back from the page by the layout's description.
  double key(int position, int head, int d) const {
    return read(view_.key_format, view_.key_offset, position, head, d);
  }
  double value(int position, int head, int d) const {
    return read(view_.value_format, view_.value_offset, position, head, d);
  }
  double original_key(int position, int head, int d) const {
    return keys_[static_cast<size_t>((int64_t{position} * shape_.n_kv_heads + head) * shape_.head_dim + d)];
  }

 private:
  template <class T>
  T at(size_t offset, int64_t index) const {
    T value;
    std::memcpy(&value, memory_.data() + offset + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  double read(Format format, size_t plane, int position, int head, int d) const {
    const int page = position / view_.page_tokens, slot = position % view_.page_tokens;
    const size_t start = static_cast<size_t>(blocks_[static_cast<size_t>(page)]) * view_.block_bytes + plane;
    const int64_t row = int64_t{head} * view_.page_tokens + slot;
    const int64_t index = row * view_.head_dim + d;
    switch (format) {
      case Format::kF32:
        return at<float>(start, index);
      case Format::kF16:
        return f16_bits_to_f32(at<uint16_t>(start, index));
      case Format::kBF16:
        return bf16_bits_to_f32(at<uint16_t>(start, index));
      default: {
        const size_t codes = static_cast<size_t>(view_.n_kv_heads * view_.page_tokens * view_.head_dim);
        return static_cast<double>(at<float>(start + codes, row)) * at<int8_t>(start, index);
      }
    }
  }

  AttentionShape shape_;
  std::vector<int32_t> blocks_;
  AlignedBuffer memory_;
  KvView view_;
  std::vector<float> keys_, values_;
};

struct Expected {
  std::vector<double> output;  // [head_dim]
  double bound;                // of every element
};

Expected expected_output(const AttentionShape& shape, const Sequence& sequence, const float* query, int head,
                         int position) {
  const int kv_head = head / (shape.n_heads / shape.n_kv_heads);
  const int first = shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
  std::vector<double> scores;
  double largest_magnitude = 0, largest_value = 0;
  for (int p = first; p <= position; ++p) {
    double dot = 0, magnitude = 0;
    for (int d = 0; d < shape.head_dim; ++d) {
      const double term = static_cast<double>(query[d]) * sequence.key(p, kv_head, d);
      dot += term;
      magnitude += std::abs(term);
      largest_value = std::max(largest_value, std::abs(sequence.value(p, kv_head, d)));
    }
    largest_magnitude = std::max(largest_magnitude, magnitude * static_cast<double>(shape.scale));
    double score = dot * static_cast<double>(shape.scale);
    if (shape.soft_cap > 0) {
      const double cap = shape.soft_cap;
      score = cap * std::tanh(score / cap);
    }
    scores.push_back(score);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  Expected e{std::vector<double>(static_cast<size_t>(shape.head_dim)), 0};
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - largest);
    sum += weight;
    for (int d = 0; d < shape.head_dim; ++d) {
      e.output[static_cast<size_t>(d)] += weight * sequence.value(first + static_cast<int>(i), kv_head, d);
    }
  }
  for (double& o : e.output) o /= sum;
  // A score is off by at most (head_dim + 4) eps times the sum of magnitudes (and, capped, by a few eps of
  // the cap); a weight by twice that relatively; a weighted mean of values by that times the largest value;
  // the sums add one eps per key and split.
  const double score_error = (shape.head_dim + 4) * kEpsilon * largest_magnitude +
                             8 * kEpsilon * static_cast<double>(shape.soft_cap);
  e.bound = largest_value * (4 * score_error + (static_cast<double>(scores.size()) + 32) * 2 * kEpsilon);
  return e;
}

struct Setting {
  AttentionShape shape;
  Format key = Format::kF32, value = Format::kF32;
  int page_tokens = 16;
};

Setting random_setting(Random& random) {
  constexpr Format kFormats[] = {Format::kF32, Format::kF16, Format::kBF16, Format::kInt8};
  constexpr int kDims[] = {32, 64, 80, 96, 128, 256, 7, 33};
  Setting s;
  s.shape.n_kv_heads = static_cast<int>(random.between(1, 3));
  s.shape.n_heads = s.shape.n_kv_heads * static_cast<int>(random.between(1, 5));
  s.shape.head_dim = kDims[random.below(std::size(kDims))];
  s.shape.scale = 1 / std::sqrt(static_cast<float>(s.shape.head_dim));
  s.shape.window = random.below(3) == 0 ? static_cast<int>(random.between(1, 150)) : 0;
  s.shape.soft_cap = random.below(4) == 0 ? 2.0F : 0.0F;
  s.key = kFormats[random.below(4)];
  s.value = kFormats[random.below(4)];
  s.page_tokens = random.below(2) == 0 ? 16 : 32;
  return s;
}

std::vector<float> attend(Backend& backend, const AttentionShape& shape, const Sequence& sequence,
                          const std::vector<float>& queries, int first, int n, int first_query_position = 0) {
  const int64_t width = int64_t{shape.n_heads} * shape.head_dim;
  std::vector<float> output(static_cast<size_t>(n * width), std::numeric_limits<float>::quiet_NaN());
  const AttentionTask task{queries.data() + (first - first_query_position) * width,
                           width,
                           output.data(),
                           width,
                           n,
                           first,
                           sequence.view()};
  backend.attention(shape, {&task, 1});
  return output;
}

TEST(Attention, agrees_with_softmax_in_double_precision) {
  for (const KernelTable* table : tables()) {
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    Random random(2, "attention");
    for (int round = 0; round < 25; ++round) {
      const Setting s = random_setting(random);
      const int n = static_cast<int>(random.between(1, 200));
      SCOPED_TRACE(std::string(name(table->isa)) + ", head_dim " + std::to_string(s.shape.head_dim) + ", " +
                   std::to_string(n) + " positions, window " + std::to_string(s.shape.window) + ", keys " +
                   std::string(name(s.key)) + ", values " + std::string(name(s.value)));
      Sequence sequence(s.shape, s.key, s.value, s.page_tokens, n, random);
      sequence.store(*backend, 0, n);
      const std::vector<float> queries = normals(random, int64_t{n} * s.shape.n_heads * s.shape.head_dim);
      const std::vector<float> output = attend(*backend, s.shape, sequence, queries, 0, n);
      for (int p = 0; p < n; ++p) {
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
    for (int round = 0; round < 12; ++round) {
      Random random(static_cast<uint64_t>(100 + round), "pieces");
      const Setting s = random_setting(random);
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
    for (const int window : {0, 1500}) {
      Random random(5, "splits");
      const AttentionShape shape{
          .n_heads = 4, .n_kv_heads = 2, .head_dim = 32, .scale = 0.2F, .window = window};
      constexpr int kPositions = 2 * kKeySplit + 300;
      Sequence sequence(shape, Format::kBF16, Format::kInt8, 16, kPositions, random);
      const auto single = *make_cpu_backend(name(table->isa), 1);
      sequence.store(*single, 0, kPositions);
      constexpr int kQueries = 40;  // more rows than one block holds, so one thread takes them without splits
      constexpr int kFirst = kPositions - kQueries;
      const std::vector<float> queries = normals(random, int64_t{kQueries} * 4 * 32);
      const std::vector<float> together = attend(*single, shape, sequence, queries, kFirst, kQueries, kFirst);
      for (const int n_threads : {1, 2, 3}) {
        const auto backend = *make_cpu_backend(name(table->isa), n_threads);
        for (int q = 0; q < kQueries; q += 13) {
          const std::vector<float> alone = attend(*backend, shape, sequence, queries, kFirst + q, 1, kFirst);
          ASSERT_TRUE(same_bits(alone, std::span(together).subspan(static_cast<size_t>(q) * 128, 128)))
              << name(table->isa) << ", threads " << n_threads << ", query " << q << ", window " << window;
        }
      }
      const Expected e = expected_output(shape, sequence, queries.data(), 0, kFirst);
      for (int d = 0; d < 32; ++d)
        ASSERT_NEAR(together[static_cast<size_t>(d)], e.output[static_cast<size_t>(d)], e.bound);
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

TEST(StoreKv, int8_pages_stay_within_half_a_step) {
  for (const KernelTable* table : tables()) {
    Random random(7, "int8_pages");
    const AttentionShape shape{.n_heads = 2, .n_kv_heads = 2, .head_dim = 40, .scale = 1};
    Sequence sequence(shape, Format::kInt8, Format::kInt8, 16, 50, random);
    const auto backend = *make_cpu_backend(name(table->isa), 1);
    sequence.store(*backend, 0, 50);
    for (int p = 0; p < 50; ++p) {
      for (int h = 0; h < 2; ++h) {
        double largest = 0;
        for (int d = 0; d < 40; ++d) largest = std::max(largest, std::abs(sequence.original_key(p, h, d)));
        for (int d = 0; d < 40; ++d) {
          ASSERT_NEAR(sequence.key(p, h, d), sequence.original_key(p, h, d), largest / 127 * 0.501);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
