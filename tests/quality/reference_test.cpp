#include "quality/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "model/model_runner.h"
#include "model/window_likelihood.h"

namespace assay {
namespace {

using test::load_model;
using test::stories_path;

constexpr const char* kReference = "w=f32 a=f32 kv=f32";
// Different formats by phase: prompt and continuation must each be computed at their own.
constexpr const char* kCandidate = "w=int8:32 a=int8/f32 kv=bf16/int8";

QualityText random_text(int n_vocab) {
  Random random(21, "quality text");
  QualityText text{.name = "random", .sequences = {}};
  for (const auto& [n, n_prompt, first] : {std::tuple{40, 40, 21}, {100, 30, 1}, {17, 5, 3}, {2, 1, 1}}) {
    QualitySequence& sequence = text.sequences.emplace_back();
    sequence.n_prompt = n_prompt;
    sequence.first_scored = first;
    for (int i = 0; i < n; ++i) {
      sequence.tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(n_vocab))));
    }
  }
  return text;
}

// Logits of every position but the last, one forward call for the prompt and one for the rest.
std::vector<std::vector<float>> all_logits(Model& model, const QualitySequence& sequence) {
  test::Runner runner(model);
  const std::span<const int32_t> tokens(sequence.tokens);
  const auto n_prompt = static_cast<size_t>(sequence.n_prompt);
  const auto width = static_cast<size_t>(model.config().n_embedding);
  std::vector<float> hidden = runner.run(tokens.first(n_prompt));
  if (n_prompt < tokens.size()) {
    const auto rest = runner.run(tokens.subspan(n_prompt), static_cast<int>(tokens.size() - n_prompt));
    hidden.insert(hidden.end(), rest.begin(), rest.end());
  }
  std::vector<std::vector<float>> logits;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const Phase phase = i < n_prompt ? Phase::kPrefill : Phase::kDecode;
    logits.push_back(runner.logits_of_last(std::span(hidden).first((i + 1) * width), phase));
  }
  return logits;
}

double kl_by_definition(const std::vector<float>& a, const std::vector<float>& b) {
  double kl = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double log_p = -test::negative_log_likelihood(a, static_cast<int32_t>(i));
    const double log_q = -test::negative_log_likelihood(b, static_cast<int32_t>(i));
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return kl;
}

TEST(QualityReference, agrees_with_the_definition_position_by_position) {
  SKIP_WITHOUT(stories_path());
  const auto reference_model = load_model(stories_path(), kReference);
  const auto candidate_model = load_model(stories_path(), kCandidate);
  const QualityText text = random_text(reference_model->config().n_vocab);
  auto reference = test::must(QualityReference::record(reference_model, text));
  const QualityRecord record = test::must(reference.compare(*candidate_model));

  double kl = 0, reference_nll = 0, candidate_nll = 0;
  int64_t n = 0, same = 0;
  for (const QualitySequence& sequence : text.sequences) {
    const auto a = all_logits(*reference_model, sequence);
    const auto b = all_logits(*candidate_model, sequence);
    for (size_t i = static_cast<size_t>(sequence.first_scored); i < sequence.tokens.size(); ++i, ++n) {
      kl += kl_by_definition(a[i - 1], b[i - 1]);
      reference_nll += test::negative_log_likelihood(a[i - 1], sequence.tokens[i]);
      candidate_nll += test::negative_log_likelihood(b[i - 1], sequence.tokens[i]);
      same += std::ranges::max_element(a[i - 1]) - a[i - 1].begin() ==
              std::ranges::max_element(b[i - 1]) - b[i - 1].begin();
    }
  }
  const auto count = static_cast<double>(n);
  EXPECT_EQ(record.text.n_scored, n);
  EXPECT_GT(record.mean_kl, 1e-6);  // the candidate is lossy
  // f32 exponentials in compare_logits: 1e-7 relative on each term.
  EXPECT_NEAR(record.mean_kl, kl / count, 1e-6);
  EXPECT_NEAR(std::log(record.reference_perplexity), reference_nll / count, 1e-6);
  EXPECT_NEAR(std::log(record.perplexity), candidate_nll / count, 1e-6);
  EXPECT_DOUBLE_EQ(record.top1_agreement, static_cast<double>(same) / count);
  EXPECT_LE(record.mean_kl_low, record.mean_kl);
  EXPECT_GE(record.mean_kl_high, record.mean_kl);
  EXPECT_EQ(record.layers.size(), static_cast<size_t>(reference_model->config().n_layers) + 2);
  EXPECT_EQ(record.n_not_finite, 0);

  const Perplexity perplexity = test::must(measure_perplexity(*candidate_model, text));
  EXPECT_NEAR(perplexity.value, record.perplexity, 1e-6 * record.perplexity);
  EXPECT_EQ(perplexity.n_scored, n);
}

TEST(QualityReference, against_itself_is_exactly_zero) {
  SKIP_WITHOUT(stories_path());
  const auto model = load_model(stories_path(), kReference);
  const auto again =
      load_model(stories_path(), kReference, 1, {.max_batch_tokens = 7});  // other pieces, other threads
  auto reference = test::must(QualityReference::record(model, random_text(model->config().n_vocab)));
  for (Model* candidate : {model.get(), again.get()}) {
    const QualityRecord record = test::must(reference.compare(*candidate));
    EXPECT_EQ(record.mean_kl, 0);
    EXPECT_EQ(record.max_kl, 0);
    EXPECT_EQ(record.top1_agreement, 1);
    EXPECT_EQ(record.top_k_overlap, 1);
    EXPECT_EQ(record.perplexity, record.reference_perplexity);
  }
}

TEST(QualityReference, layer_errors_are_zero_against_itself_and_grow_with_coarser_weights) {
  SKIP_WITHOUT(stories_path());
  const auto model = load_model(stories_path(), kReference);
  auto reference = test::must(QualityReference::record(model, random_text(model->config().n_vocab)));
  for (const LayerError& layer : test::must(reference.compare(*model)).layers)
    EXPECT_EQ(layer.relative_error, 0);
  const auto fine = load_model(stories_path(), "w=int8:32 a=f32 kv=f32");
  const auto coarse = load_model(stories_path(), "w=int4:32 a=f32 kv=f32");
  const QualityRecord fine_record = test::must(reference.compare(*fine));
  const QualityRecord coarse_record = test::must(reference.compare(*coarse));
  EXPECT_GT(fine_record.layers.back().relative_error, 0);
  EXPECT_GT(coarse_record.layers.back().relative_error, 4 * fine_record.layers.back().relative_error);
  EXPECT_GT(coarse_record.mean_kl, fine_record.mean_kl);
}

TEST(QualityReference, stops_when_told_and_can_be_used_again) {
  SKIP_WITHOUT(stories_path());
  const auto model = load_model(stories_path(), kReference);
  const QualityText text = random_text(model->config().n_vocab);
  const auto refuse = [](int64_t, int64_t) { return false; };
  const auto stopped = QualityReference::record(model, text, refuse);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  auto reference = test::must(QualityReference::record(model, text));
  const auto compared = reference.compare(*model, refuse);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(reference.compare(*model));
}

TEST(QualityReference, another_model_is_refused) {
  SKIP_WITHOUT(stories_path());
  SKIP_WITHOUT(test::smollm_path());
  const auto model = load_model(stories_path(), kReference);
  auto reference = test::must(QualityReference::record(model, random_text(model->config().n_vocab)));
  const auto other = load_model(test::smollm_path(), "w=file a=int8 kv=bf16");
  const auto compared = reference.compare(*other);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay
