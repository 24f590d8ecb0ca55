// The sampler against numbers recorded from numpy, a full sort in double precision, and the distributions it
// must draw from.
#include "engine/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

#include "base/random.h"
#include "engine/softmax_weights.h"

namespace assay {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The generator of record_sampling.py.
std::vector<float> recorded_logits(int n_vocab, uint64_t seed) {
  std::vector<float> logits;
  for (int i = 0; i < n_vocab; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    logits.push_back(static_cast<float>((seed >> 40) % 65536) / 4096.0F - 8.0F);
  }
  return logits;
}

std::vector<float> random_logits(Random& random, int n_vocab, double spread) {
  std::vector<float> logits;
  for (int i = 0; i < n_vocab; ++i) logits.push_back(static_cast<float>(random.normal() * spread));
  return logits;
}

int32_t sample_one(const SamplingParams& params, const std::vector<float>& logits,
                   std::vector<int32_t> prompt = {}) {
  Sampler sampler(params, prompt);
  SamplerWorkspace workspace;
  const auto sampled = sampler.sample(logits, workspace);
  EXPECT_TRUE(sampled.has_value());
  return sampled ? sampled->token : -1;
}

TEST(Sampler, kept_tokens_and_logprobs_are_those_of_numpy) {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/engine/data/sampling.txt");
  int n_cases = 0;
  for (std::string line; std::getline(file, line); ++n_cases) {
    SCOPED_TRACE(line.substr(0, line.find('|')));
    std::istringstream in(line);
    int n_vocab = 0;
    uint64_t seed = 0;
    SamplingParams params;
    in >> n_vocab >> seed >> params.temperature >> params.top_k >> params.top_p >> params.min_p;
    params.top_logprobs = 5;
    std::vector<std::vector<std::string>> fields;
    for (std::string word; in >> word;) {
      if (word == "|") {
        fields.emplace_back();
      } else {
        fields.back().push_back(word);
      }
    }
    ASSERT_EQ(fields.size(), 3U);

    const std::vector<float> logits = recorded_logits(n_vocab, seed);
    SamplerWorkspace workspace;
    select_candidates(logits, range_of(logits).max, params, workspace);
    std::vector<Candidate> kept = workspace.candidates;
    std::ranges::sort(kept, {}, &Candidate::token);
    std::ranges::stable_sort(kept, std::greater{}, &Candidate::logit);
    double total = 0;
    for (const Candidate& candidate : kept) total += static_cast<double>(candidate.weight);
    ASSERT_GE(kept.size(), fields[0].size());
    if (fields[0].size() < 200) {
      EXPECT_EQ(kept.size(), fields[0].size());
    }
    for (size_t i = 0; i < fields[0].size(); ++i) {
      EXPECT_EQ(kept[i].token, std::stoi(fields[0][i]));
      // Weights carry a relative error below 3e-7 each, and so does their sum.
      const double expected = std::stod(fields[1][i]);
      EXPECT_NEAR(static_cast<double>(kept[i].weight) / total, expected, expected * 1e-6);
    }
    Sampler sampler(params, {});
    const auto sampled = sampler.sample(logits, workspace);
    ASSERT_TRUE(sampled.has_value());
    for (size_t i = 0; i < 5; ++i) {
      const size_t colon = fields[2][i].find(':');
      EXPECT_EQ(sampled->top[i].token, std::stoi(fields[2][i].substr(0, colon)));
      EXPECT_NEAR(sampled->top[i].logprob, std::stod(fields[2][i].substr(colon + 1)), 2e-6);
    }
  }
  EXPECT_EQ(n_cases, 24);
}

TEST(SoftmaxWeights, exponential_is_within_its_bound) {
  std::vector<float> x, weights;
  for (float value = 0; value > -95; value -= 0.0007F) x.push_back(value);
  weights.resize(x.size());
  const double sum = softmax_weights(x, 0, 1, weights);
  double expected_sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = x[i] < -87 ? 0 : std::exp(static_cast<double>(x[i]));
    expected_sum += expected;
    ASSERT_NEAR(weights[i], expected, expected * 3e-7) << x[i];
  }
  EXPECT_NEAR(sum, expected_sum, expected_sum * 3e-7);
  const std::vector<float> edge = {0, -kInfinity};
  std::vector<float> edge_weights(2);
  EXPECT_EQ(softmax_weights(edge, 0, 1, edge_weights), 1);
  EXPECT_EQ(edge_weights[1], 0);
}

// Every kept set is a prefix of the sorted vocabulary; its length follows from sums in double. Where a sum
// lies within rounding of its bound, either length is right.
RC_GTEST_PROP(SelectCandidates, random_parameters_keep_what_a_full_sort_keeps, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const int n_vocab = *rc::gen::element(1, 2, 7, 100, 3000);
  std::vector<float> logits = random_logits(random, n_vocab, *rc::gen::element(0.0, 0.3, 3.0, 20.0));
  if (*rc::gen::arbitrary<bool>())  // ties
    for (float& logit : logits) logit = std::round(logit);
  SamplingParams params;
  params.temperature = *rc::gen::element(0.1F, 0.8F, 1.0F, 5.0F);
  params.top_k = *rc::gen::element(0, 1, 2, 40, 5000);
  params.top_p = *rc::gen::element(1.0F, 0.99F, 0.9F, 0.3F, 0.0001F);
  params.min_p = *rc::gen::element(0.0F, 0.01F, 0.5F, 1.0F);

  std::vector<int32_t> order(static_cast<size_t>(n_vocab));
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int32_t token) { return static_cast<double>(logits[static_cast<size_t>(token)]); };
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return at(a) > at(b); });
  if (params.top_k > 0 && params.top_k < n_vocab) order.resize(static_cast<size_t>(params.top_k));
  std::vector<double> weights;
  for (const int32_t token : order)
    weights.push_back(std::exp((at(token) - at(order[0])) / static_cast<double>(params.temperature)));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  constexpr double kSlack = 1e-5;
  size_t shortest = 0, longest = 0;  // lengths that some rounding allows
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double p = static_cast<double>(params.top_p) * total, least = static_cast<double>(params.min_p);
    if (sum < p * (1 - kSlack) && weights[i] >= least * (1 + kSlack)) shortest = i + 1;
    if ((params.top_p >= 1 || sum < p * (1 + kSlack)) && weights[i] >= least * (1 - kSlack)) longest = i + 1;
    sum += weights[i];
  }
  SamplerWorkspace workspace;
  select_candidates(logits, range_of(logits).max, params, workspace);
  std::vector<Candidate> kept = workspace.candidates;
  std::ranges::sort(kept, {}, &Candidate::token);
  std::ranges::stable_sort(kept, std::greater{}, &Candidate::logit);
  RC_ASSERT(kept.size() >= std::max<size_t>(shortest, params.min_p == 1 ? 1 : shortest));
  RC_ASSERT(kept.size() <= longest);
  RC_ASSERT(!kept.empty());
  for (size_t i = 0; i < kept.size(); ++i) RC_ASSERT(kept[i].token == order[i]);
}

// Draws must follow the distribution: chi-square with a fixed seed, bound at p = 1e-6 for the degrees of
// freedom.
void expect_distribution(const SamplingParams& params, const std::vector<float>& logits,
                         const std::vector<double>& expected, double chi_square_bound) {
  constexpr int kDraws = 40000;
  std::map<int32_t, int> counts;
  SamplingParams seeded = params;
  seeded.seed = 20240607;
  Sampler sampler(seeded, {});
  SamplerWorkspace workspace;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.sample(logits, workspace)->token];
  double chi_square = 0;
  for (size_t token = 0; token < expected.size(); ++token) {
    const int count = counts[static_cast<int32_t>(token)];
    if (expected[token] == 0) {
      EXPECT_EQ(count, 0) << token;
      continue;
    }
    const double mean = expected[token] * kDraws;
    chi_square += (count - mean) * (count - mean) / mean;
  }
  EXPECT_LT(chi_square, chi_square_bound);
  EXPECT_GT(chi_square, 0);
}

TEST(Sampler, draws_follow_the_distribution) {
  // Probabilities 0.4 0.3 0.2 0.1.
  const std::vector<float> logits = {std::log(4.0F), std::log(3.0F), std::log(2.0F), std::log(1.0F)};
  expect_distribution({}, logits, {0.4, 0.3, 0.2, 0.1}, 30.7);  // 3 degrees of freedom
  expect_distribution({.top_k = 3}, logits, {4 / 9.0, 3 / 9.0, 2 / 9.0, 0}, 27.7);
  expect_distribution({.top_p = 0.65F}, logits, {4 / 7.0, 3 / 7.0, 0, 0}, 24.0);
  expect_distribution({.min_p = 0.4F}, logits, {4 / 9.0, 3 / 9.0, 2 / 9.0, 0}, 27.7);
  // Temperature 1/2 squares the weights: 16 9 4 1.
  expect_distribution({.temperature = 0.5F}, logits, {16 / 30.0, 9 / 30.0, 4 / 30.0, 1 / 30.0}, 30.7);
  // top-p counts shares of what top-k left: 4/7 < 0.58, so two stay; of the whole it would be one.
  expect_distribution({.top_k = 2, .top_p = 0.58F}, logits, {4 / 7.0, 3 / 7.0, 0, 0}, 24.0);
}

// The same over vocabularies where the cut falls inside a bin, among ties, and where every token is kept.
TEST(Sampler, draws_from_a_nucleus_follow_the_distribution_of_a_full_sort) {
  Random random(77);
  for (const int n_vocab : {30, 300}) {
    for (const float top_p : {0.3F, 0.8F, 0.9999F}) {
      for (const float temperature : {0.7F, 3.0F}) {
        for (const bool ties : {false, true}) {
          std::vector<float> logits = random_logits(random, n_vocab, 1.0);
          if (ties)
            for (float& logit : logits) logit = std::round(logit * 4) / 4;
          std::vector<size_t> order(logits.size());
          std::iota(order.begin(), order.end(), size_t{0});
          std::ranges::stable_sort(order, std::greater{}, [&](size_t token) { return logits[token]; });
          std::vector<double> weights;
          for (const size_t token : order)
            weights.push_back(std::exp(static_cast<double>(logits[token]) / static_cast<double>(temperature)));
          const double target =
              static_cast<double>(top_p) * std::accumulate(weights.begin(), weights.end(), 0.0);
          size_t n_kept = 0;
          double sum = 0;
          while (n_kept < order.size() && sum < target) sum += weights[n_kept++];
          std::vector<double> expected(logits.size());
          for (size_t i = 0; i < n_kept; ++i) expected[order[i]] = weights[i] / sum;
          // Wilson and Hilferty's approximation of the quantile at 1 - 1e-6.
          const double k = std::max(static_cast<double>(n_kept) - 1, 1.0), c = 2 / (9 * k);
          const double bound = k * std::pow(1 - c + 4.753 * std::sqrt(c), 3) * 1.05 + 3;
          ASSERT_GT(n_kept, 1U);
          expect_distribution({.temperature = temperature, .top_p = top_p}, logits, expected, bound);
        }
      }
    }
  }
}

TEST(Sampler, tiniest_temperature_is_greedy) {
  const std::vector<float> logits = {1, 3, 2, -kInfinity};
  EXPECT_EQ(sample_one({.temperature = 1e-42F, .seed = 1}, logits), 1);
  EXPECT_EQ(sample_one({.temperature = 1e-42F, .top_p = 0.5F, .seed = 1}, logits), 1);
  EXPECT_EQ(sample_one({.temperature = 1e-42F, .top_k = 2, .seed = 1}, logits), 1);
}

// A vocabulary of one logit: only the ties decide, and the lowest tokens are kept.
TEST(SelectCandidates, nucleus_of_equal_logits_is_the_lowest_tokens) {
  const std::vector<float> logits(1000, 0.25F);
  SamplerWorkspace workspace;
  select_candidates(logits, 0.25F, {.top_p = 0.1005F}, workspace);
  ASSERT_EQ(workspace.candidates.size(), 101U);
  std::ranges::sort(workspace.candidates, {}, &Candidate::token);
  EXPECT_EQ(workspace.candidates.back().token, 100);
}

TEST(Sampler, greedy_takes_the_lowest_id_of_equal_logits) {
  EXPECT_EQ(sample_one({.temperature = 0}, {1, 3, 2, 3, 3}), 1);
  EXPECT_EQ(sample_one({.temperature = 0}, {-kInfinity, -5, -5}), 1);
  // top-k 1 is greedy too, whatever the temperature.
  EXPECT_EQ(sample_one({.temperature = 7, .top_k = 1}, {1, 3, 2, 3, 3}), 1);
}

TEST(Sampler, penalties_follow_their_formulas) {
  SamplingParams params{.temperature = 0};
  // Tokens 0 and 1 were generated twice and once; what must the logits have been lowered by?
  const auto after_0_0_1 = [&](const SamplingParams& penalised, std::vector<float> logits,
                               std::vector<int32_t> prompt) {
    Sampler sampler(penalised, prompt);
    SamplerWorkspace workspace;
    for (const int32_t token : {0, 0, 1}) {
      std::vector<float> forcing(4, -1000);
      forcing[static_cast<size_t>(token)] = 1000;
      EXPECT_EQ(sampler.sample(forcing, workspace)->token, token);
    }
    return sampler.sample(logits, workspace)->token;
  };
  params.presence_penalty = 1;  // {3, 2.5, 2.4} -> {2, 1.5, 2.4}
  EXPECT_EQ(after_0_0_1(params, {3, 2.5, 2.4F, 0}, {}), 2);
  EXPECT_EQ(after_0_0_1(params, {3, 2.5, 1.9F, 0}, {2}), 0);  // the prompt does not count
  params = {.temperature = 0};
  params.frequency_penalty = 1;  // {4, 2.9, 1.95} -> {2, 1.9, 1.95}
  EXPECT_EQ(after_0_0_1(params, {4, 2.9F, 1.95F, 0}, {}), 0);
  EXPECT_EQ(after_0_0_1(params, {3.9F, 2.9F, 1.95F, 0}, {}), 2);
  params = {.temperature = 0};
  params.repetition_penalty = 2;  // positive logits are divided, negative ones multiplied; the prompt counts
  EXPECT_EQ(after_0_0_1(params, {4, 1, 3, 2.1F}, {2}), 3);
  EXPECT_EQ(after_0_0_1(params, {-1, -1, -1.5, -1.9F}, {}), 2);
  EXPECT_EQ(after_0_0_1(params, {-1, -1, -1.5, -1.9F}, {2}), 3);
}

TEST(Sampler, bias_moves_the_choice_but_not_the_logprobs) {
  SamplingParams params{.temperature = 0, .logprobs = true, .top_logprobs = 1};
  params.logit_bias = {{2, 10.0F}, {0, -100.0F}};
  Sampler sampler(params, {});
  SamplerWorkspace workspace;
  const std::vector<float> logits = {std::log(6.0F), std::log(3.0F), std::log(1.0F)};
  const auto sampled = sampler.sample(logits, workspace);
  ASSERT_TRUE(sampled.has_value());
  EXPECT_EQ(sampled->token, 2);
  EXPECT_NEAR(*sampled->logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(sampled->top.size(), 1U);
  EXPECT_EQ(sampled->top[0].token, 0);
  EXPECT_NEAR(sampled->top[0].logprob, std::log(0.6), 1e-6);
}

TEST(Sampler, same_seed_gives_same_tokens_and_another_seed_others) {
  Random random(5);
  const std::vector<float> logits = random_logits(random, 1000, 1.0);
  const auto draw = [&](uint64_t seed) {
    Sampler sampler({.seed = seed}, {});
    SamplerWorkspace workspace;
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.sample(logits, workspace)->token);
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, numbers_that_are_no_numbers_are_one_clear_error) {
  SamplerWorkspace workspace;
  for (const auto& [logits, text] : std::vector<std::pair<std::vector<float>, std::string>>{
           {{1, kNaN, 2}, "found nan at token 1 of 3"},
           {{1, 2, kInfinity}, "found inf at token 2 of 3"},
           {{-kInfinity, -kInfinity}, "all 2 are negative infinity"}}) {
    Sampler sampler({}, {});
    const auto sampled = sampler.sample(logits, workspace);
    ASSERT_FALSE(sampled.has_value());
    EXPECT_EQ(sampled.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(sampled.error().what.find(text), std::string::npos) << sampled.error().what;
  }
}

TEST(SamplingParams, values_out_of_range_are_refused_by_name) {
  EXPECT_TRUE(SamplingParams{}.validate(10).has_value());
  const auto expect_refused = [](const SamplingParams& params, const std::string& field) {
    const auto result = params.validate(10);
    ASSERT_FALSE(result.has_value()) << field;
    EXPECT_EQ(result.error().where, field);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  };
  for (const float bad : {-0.1F, 100.5F, kNaN, kInfinity})
    expect_refused({.temperature = bad}, "temperature");
  for (const float bad : {0.0F, 1.1F, kNaN, -kInfinity}) expect_refused({.top_p = bad}, "top_p");
  for (const float bad : {-0.1F, 1.1F, kNaN}) expect_refused({.min_p = bad}, "min_p");
  for (const float bad : {-2.1F, 2.1F, kNaN}) {
    expect_refused({.presence_penalty = bad}, "presence_penalty");
    expect_refused({.frequency_penalty = bad}, "frequency_penalty");
  }
  for (const float bad : {0.0F, -1.0F, 10.5F, kNaN})
    expect_refused({.repetition_penalty = bad}, "repetition_penalty");
  expect_refused({.top_k = -1}, "top_k");
  expect_refused({.top_logprobs = 21}, "top_logprobs");
  expect_refused({.top_logprobs = -1}, "top_logprobs");
  expect_refused({.logit_bias = {{10, 1.0F}}}, "logit_bias");
  expect_refused({.logit_bias = {{-1, 1.0F}}}, "logit_bias");
  expect_refused({.logit_bias = {{1, 100.5F}}}, "logit_bias");
  expect_refused({.logit_bias = std::vector<std::pair<int32_t, float>>(11, {1, 1.0F})}, "logit_bias");
}

}  // namespace
}  // namespace assay
