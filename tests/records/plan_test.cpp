#include "records/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/random.h"
#include "records/json_codec.h"

namespace assay {
namespace {

// A plan whose every field holds something of its own.
Plan varied_plan(uint64_t seed) {
  Random random(seed, "plan");
  Plan plan;
  plan.model = {"model \"quoted\".gguf", "llama", random.next(), "00ff"};
  plan.contract.quality.max_mean_kl = random.uniform();
  plan.contract.latency.ttft_seconds = random.uniform();
  plan.contract.pressure = QualityBounds{.max_mean_kl = 1.5};
  plan.contract.text = "text\n\t\xc3\xa9";
  plan.machine.cpu_features = {"avx2", "fma"};
  plan.machine.memory_bytes = random.next();
  plan.provenance = make_provenance(random.next(), "assay tune c.toml");
  const int n = static_cast<int>(random.between(1, 4));
  for (int i = 0; i < n; ++i) {
    Candidate candidate;
    candidate.precision.weights = {.as_shipped = false, .format = Format::kInt4, .group = 64};
    candidate.precision.kv_value = Format::kInt8;
    candidate.holds = random.below(2) == 0;
    candidate.request_seconds = random.uniform() * 1e-3;
    QualityRecord quality;
    quality.mean_kl = random.uniform();
    quality.p99_kl = 1.0 / 3.0;
    quality.layers = {{-1, 0.0}, {0, random.uniform()}};
    candidate.quality = quality;
    candidate.broken = {{"quality.max_mean_kl", 0.1, 0.2, "nats"}};
    plan.candidates.push_back(candidate);
    plan.ladder.push_back(i);
  }
  return plan;
}

std::filesystem::path temporary_file(const std::string& content) {
  const auto path = std::filesystem::path(testing::TempDir()) / "plan_test.json";
  EXPECT_TRUE(write_file_atomically(path, content));
  return path;
}

TEST(Plan, json_round_trip_is_identical) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = record_to_json(varied_plan(seed));
    const auto read = record_from_json<Plan>(text, "plan.json");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(record_to_json(*read), text);
    EXPECT_EQ(read->model.file_bytes, varied_plan(seed).model.file_bytes);
    EXPECT_EQ(read->candidates[0].precision, varied_plan(seed).candidates[0].precision);
  }
}

TEST(Plan, not_finite_numbers_survive_as_nan) {
  Plan plan = varied_plan(1);
  plan.candidates[0].request_seconds = std::numeric_limits<double>::infinity();
  const auto read = record_from_json<Plan>(record_to_json(plan), "plan.json");
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->candidates[0].request_seconds));
}

TEST(Plan, file_with_bad_ladder_or_without_rung_is_refused) {
  Plan plan = varied_plan(3);
  plan.ladder = {17};
  auto read = read_plan(temporary_file(record_to_json(plan)));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message().find("ladder names candidate 17"), std::string::npos);
  plan.ladder = {};
  read = read_plan(temporary_file(record_to_json(plan)));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message().find("no candidate met the contract"), std::string::npos);
}

struct Edit {
  const char* from;
  const char* to;
  const char* message;
};

class PlanBadInput : public testing::TestWithParam<Edit> {};

TEST_P(PlanBadInput, edited_file_gives_one_clear_error) {
  std::string text = record_to_json(varied_plan(5));
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(GetParam().from).size(), GetParam().to);
  const auto read = record_from_json<Plan>(text, "plan.json");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message().find(GetParam().message), std::string::npos) << read.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlanBadInput,
    testing::Values(
        Edit{"\"kind\": \"plan\"", "\"kind\": \"quality\"", "expected \"kind\": \"plan\""},
        Edit{"\"version\": 1", "\"version\": 99", "has plan version 99, this assay reads version 1"},
        Edit{"\"version\": 1", "\"version\": \"1\"", "positive \"version\""},
        Edit{"\"architecture\": \"llama\"", "\"architecture\": 5",
             "plan.json: model.architecture: expected a string, found the number 5"},
        Edit{"\"architecture\": \"llama\",", "", "model.architecture: is missing"},
        Edit{"\"architecture\"", "\"extra\": 1, \"architecture\"", "model.extra: unknown field"},
        Edit{"\"precision\": \"w=int4", "\"precision\": \"w=int5", "candidates[0].precision"},
        Edit{"\"prompt_tokens\": 256", "\"prompt_tokens\": 1e30", "expected an integer"},
        Edit{"\"prompt_tokens\": 256", "\"prompt_tokens\": 5000000000", "expected an integer from"},
        Edit{"\"ladder\": [", "\"ladder\": [[", "is not valid JSON"},
        Edit{"\"holds\": ", "\"holds\": 3, \"x\": ", "expected true or false"}));

TEST(Json, depth_beyond_the_limit_is_refused) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_FALSE(parse_json(deep, "deep.json"));
  EXPECT_TRUE(parse_json("[[[1]]]", "shallow.json"));
  EXPECT_FALSE(parse_json("{} trailing", "trailing.json"));
}

}  // namespace
}  // namespace assay
