// Batch invariance, bit for bit: whatever shares the batch, however the prompt was cut, whether its first
// pages came from the cache, and with however many threads, a token's hidden state and logits are the same.
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "kvcache/prefix_index.h"
#include "model/model_runner.h"

namespace assay {
namespace {

using test::must;
using test::Runner;

struct Setting {
  std::filesystem::path path;
  std::string_view precision;
  std::string_view isa;
  int n_sequences;
  int longest;  // prompt
};

std::vector<int32_t> random_tokens(Random& random, const Model& model, int n) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < n; ++i)
    tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(model.config().n_vocab))));
  return tokens;
}

void expect_same_bits(std::span<const float> found, std::span<const float> expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  if (std::memcmp(found.data(), expected.data(), expected.size_bytes()) == 0) return;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << ": value " << i;
  }
}

// A prompt and two sampled tokens: prefill in one piece, then one step per token.
struct Sequence {
  std::vector<int32_t> tokens;
  int n_prompt = 0;
  std::vector<float> hidden;  // alone
};
constexpr int kSampled = 2;

std::vector<float> run_alone(Model& model, const Sequence& sequence, size_t piece) {
  Runner runner(model);
  const std::span tokens(sequence.tokens);
  auto hidden = runner.run_pieces(tokens.first(static_cast<size_t>(sequence.n_prompt)), piece);
  for (int i = 0; i < kSampled; ++i) {
    const auto step = runner.run(tokens.subspan(static_cast<size_t>(sequence.n_prompt + i), 1), 1);
    hidden.insert(hidden.end(), step.begin(), step.end());
  }
  return hidden;
}

std::vector<Sequence> make_sequences(Model& model, const Setting& setting) {
  Random random(11, setting.precision);
  std::vector<Sequence> sequences;
  for (int i = 0; i < setting.n_sequences; ++i) {
    Sequence sequence{.n_prompt = static_cast<int>(random.between(1, setting.longest))};
    sequence.tokens = random_tokens(random, model, sequence.n_prompt + kSampled);
    sequence.hidden = run_alone(model, sequence, 4096);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// All sequences in one pool, each advancing by a random number of tokens per step: prompts in pieces beside
// sampled tokens, and slices that hold the end of a prompt together with the first sampled tokens. With
// `some_rows` hidden states are wanted of random tails of the slices only, now and then of none.
void expect_ragged_batches_change_nothing(Model& model, const std::vector<Sequence>& sequences,
                                          bool some_rows) {
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  KvPool pool = must(KvPool::create(model.kv_layout(), 16 * static_cast<int64_t>(sequences.size())));
  std::vector<PageTable> tables;
  for (size_t i = 0; i < sequences.size(); ++i) tables.emplace_back(pool);
  std::vector<size_t> done(sequences.size());
  Random random(12);
  for (bool any = true; any;) {
    any = false;
    std::vector<SequenceSlice> batch;
    std::vector<size_t> who;
    size_t room = static_cast<size_t>(model.max_batch_tokens());
    for (size_t i = 0; i < sequences.size(); ++i) {
      const size_t left = sequences[i].tokens.size() - done[i];
      const size_t n = std::min({left, room, static_cast<size_t>(random.between(0, 24))});
      any = any || left > 0;
      if (n == 0) continue;
      room -= n;
      ASSERT_TRUE(tables[i].grow(static_cast<int64_t>(done[i] + n)));
      batch.push_back({.tokens = std::span(sequences[i].tokens).subspan(done[i], n),
                       .first_position = static_cast<int>(done[i]),
                       .blocks = tables[i].blocks(),
                       .n_prompt = sequences[i].n_prompt - static_cast<int>(done[i]),
                       .first_wanted = some_rows ? static_cast<int>(random.below(n + 1)) : 0});
      who.push_back(i);
    }
    size_t n_rows = 0;
    for (const auto& slice : batch) n_rows += static_cast<size_t>(slice.n_wanted());
    std::vector<float> hidden(n_rows * n_embedding);
    model.forward(batch, pool, hidden);
    size_t row = 0;
    for (size_t k = 0; k < batch.size(); ++k) {
      const auto n = static_cast<size_t>(batch[k].n_wanted());
      const size_t first = done[who[k]] + static_cast<size_t>(batch[k].first_wanted);
      expect_same_bits(std::span(hidden).subspan(row * n_embedding, n * n_embedding),
                       std::span(sequences[who[k]].hidden).subspan(first * n_embedding, n * n_embedding),
                       some_rows ? "batch, some rows wanted" : "batch");
      row += n;
      done[who[k]] += batch[k].tokens.size();
    }
  }
}

void expect_reused_pages_change_nothing(Model& model, const Sequence& first) {
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  // Shares all but the last five prompt tokens with the first sequence.
  Sequence second{.tokens = first.tokens, .n_prompt = first.n_prompt};
  for (int i = first.n_prompt - 5; i < first.n_prompt; ++i) {
    auto& token = second.tokens[static_cast<size_t>(i)];
    token = (token + 1) % model.config().n_vocab;
  }
  second.hidden = run_alone(model, second, 4096);

  Runner runner(model);
  PrefixIndex index(runner.pool());
  const auto n_prompt = static_cast<size_t>(first.n_prompt);
  runner.run(std::span(first.tokens).first(n_prompt));
  index.insert(std::span(first.tokens).first(n_prompt), runner.table());
  runner.table().clear();
  runner.table().adopt(index.match(std::span(second.tokens).first(n_prompt - 1)));
  const auto n_found = static_cast<size_t>(runner.table().n_positions());
  ASSERT_GE(n_found, 16U);
  runner.start_at(static_cast<int>(n_found));
  const auto hidden = runner.run(std::span(second.tokens).subspan(n_found, n_prompt - n_found));
  expect_same_bits(hidden, std::span(second.hidden).subspan(n_found * n_embedding, hidden.size()),
                   "reused prefix");
}

void expect_projection_of_rows_changes_nothing(Model& model, const Sequence& sequence) {
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  const auto n_vocab = static_cast<size_t>(model.config().n_vocab);
  const size_t n_rows = std::min<size_t>(sequence.tokens.size(), 16);
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    std::vector<float> together(n_rows * n_vocab), alone(n_vocab);
    model.project(std::span(sequence.hidden).first(n_rows * n_embedding), static_cast<int64_t>(n_rows), phase,
                  together);
    for (size_t row = 0; row < n_rows; ++row) {
      model.project(std::span(sequence.hidden).subspan(row * n_embedding, n_embedding), 1, phase, alone);
      expect_same_bits(std::span(together).subspan(row * n_vocab, n_vocab), alone, "projection");
    }
  }
}

void expect_batch_invariance(const Setting& setting) {
  SCOPED_TRACE(setting.precision);
  const LoadOptions options{.max_batch_tokens = 160, .max_context = 256};
  const auto model = test::load_model(setting.path, setting.precision, 2, options, setting.isa);
  const auto sequences = make_sequences(*model, setting);
  expect_ragged_batches_change_nothing(*model, sequences, false);
  expect_ragged_batches_change_nothing(*model, sequences, true);
  const Sequence& longest = *std::ranges::max_element(sequences, {}, &Sequence::n_prompt);
  expect_same_bits(run_alone(*model, longest, 7), longest.hidden, "pieces of 7");
  expect_reused_pages_change_nothing(*model, longest);
  expect_projection_of_rows_changes_nothing(*model, longest);
  const auto serial = test::load_model(setting.path, setting.precision, 1, options, setting.isa);
  expect_same_bits(run_alone(*serial, longest, 4096), longest.hidden, "one thread");
}

class BatchInvarianceOfTable : public testing::TestWithParam<const char*> {};

TEST_P(BatchInvarianceOfTable, tiny_model_at_every_precision) {
  SKIP_WITHOUT(test::stories_path());
  if (!make_cpu_backend(GetParam(), 1)) GTEST_SKIP() << "this CPU has no " << GetParam();
  for (const std::string_view precision :
       {"w=f32 a=f32 kv=f32", "w=bf16 a=bf16 kv=bf16", "w=f16 a=f32 kv=f16", "w=int8 a=int8 kv=int8",
        "w=int8 a=bf16/int8 kv=int8/bf16", "w=int4 a=int8/f32 kv=bf16/int8",
        "w=fp8_e4m3 a=bf16/f32 kv=f32", "w=bf16 a=bf16 kv=fp8_e4m3", "w=bf16 a=f32 kv=fp8_e5m2",
        "w=bf16 a=int8 kv=int4", "w=bf16 a=int8 kv=int8/int4"}) {
    expect_batch_invariance({test::stories_path(), precision, GetParam(), 16, 48});
  }
}
INSTANTIATE_TEST_SUITE_P(Isa, BatchInvarianceOfTable, testing::Values("portable", "avx2", "avx512"),
                         [](const auto& table) { return std::string(table.param); });

TEST(BatchInvariance, real_model_as_shipped) {
  SKIP_WITHOUT(test::smollm_path());
  expect_batch_invariance({test::smollm_path(), "w=file a=int8 kv=bf16", "auto", 6, 40});
}

TEST(BatchInvariance, real_model_with_a_format_per_phase) {
  SKIP_WITHOUT(test::smollm_path());
  expect_batch_invariance({test::smollm_path(), "w=int8 a=bf16/int8 kv=int8/bf16", "auto", 4, 40});
}

}  // namespace
}  // namespace assay
