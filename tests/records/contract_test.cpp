#include "records/contract.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

TEST(Contract, every_key_is_read) {
  const auto contract = parse_contract(R"(
model = "smollm2-135m"
[quality]
max_mean_kl = 0.05
max_p999_kl = 2
min_top1 = 0.9
max_perplexity_increase = 0.02
text = "sample.txt"
[latency]
ttft = "500 ms"
tpot = "30ms"
e2e = "5 s"
[throughput]
prefill = 200
decode = 40.5
[memory]
resident = "1 GiB"
[workload]
prompt_tokens = 300
output_tokens = 20
concurrency = 4
[pressure]
max_mean_kl = 0.2
min_top1 = 0.8
[search]
candidates = ["w=file a=int8 kv=bf16", "w=bf16 a=bf16 kv=int8"]
choose = "memory"
seed = 7
)",
                                       "contract.toml");
  ASSERT_TRUE(contract) << contract.error().message();
  EXPECT_EQ(contract->model, "smollm2-135m");
  EXPECT_EQ(contract->quality.max_mean_kl, 0.05);
  EXPECT_EQ(contract->quality.max_p999_kl, 2);
  EXPECT_EQ(contract->quality.min_top1, 0.9);
  EXPECT_EQ(contract->quality.max_perplexity_increase, 0.02);
  EXPECT_EQ(contract->text, "sample.txt");
  EXPECT_EQ(contract->latency.ttft_seconds, 0.5);
  EXPECT_EQ(contract->latency.tpot_seconds, 0.03);
  EXPECT_EQ(contract->latency.e2e_seconds, 5);
  EXPECT_EQ(contract->throughput.prefill_tokens_per_second, 200);
  EXPECT_EQ(contract->throughput.decode_tokens_per_second, 40.5);
  EXPECT_EQ(contract->memory.resident_bytes, uint64_t{1} << 30);
  EXPECT_EQ(contract->workload.prompt_tokens, 300);
  EXPECT_EQ(contract->workload.output_tokens, 20);
  EXPECT_EQ(contract->workload.concurrency, 4);
  ASSERT_TRUE(contract->pressure);
  EXPECT_EQ(contract->pressure->max_mean_kl, 0.2);
  ASSERT_EQ(contract->search.candidates.size(), 2U);
  EXPECT_EQ(contract->search.candidates[1].kv_key, Format::kInt8);
  EXPECT_EQ(contract->search.choose, "memory");
  EXPECT_EQ(contract->search.seed, 7U);
}

TEST(Contract, empty_file_has_defaults_and_no_bounds) {
  const auto contract = parse_contract("", "c.toml");
  ASSERT_TRUE(contract);
  EXPECT_FALSE(contract->quality.any());
  EXPECT_FALSE(contract->pressure);
  EXPECT_EQ(contract->workload.prompt_tokens, 256);
}

struct BadContract {
  const char* text;
  const char* message;  // must be contained in the error
};

class ContractBadInput : public testing::TestWithParam<BadContract> {};

TEST_P(ContractBadInput, gives_one_clear_error) {
  const auto contract = parse_contract(GetParam().text, "c.toml");
  ASSERT_FALSE(contract);
  EXPECT_EQ(contract.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(contract.error().message().find(GetParam().message), std::string::npos)
      << contract.error().message();
  EXPECT_EQ(contract.error().message().find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ContractBadInput,
    testing::Values(
        BadContract{"[quality]\nmax_kl = 1",
                    "c.toml:2: quality.max_kl: unknown key; expected one of: max_mean_kl"},
        BadContract{"speed = 3", "c.toml:1: speed: unknown key"},
        BadContract{"quality = 3", "quality must be a table: [quality]"},
        BadContract{"[quality]\nmax_mean_kl = -0.1", "quality.max_mean_kl: -0.1 cannot hold"},
        BadContract{"[quality]\nmax_mean_kl = nan", "cannot hold"},
        BadContract{"[quality]\nmax_mean_kl = \"0.1\"", "expected a number"},
        BadContract{"[quality]\nmin_top1 = 1.5",
                    "quality.min_top1: 1.5 cannot hold: expected a number from 0 to 1"},
        BadContract{"[quality]\ntext = 4", "quality.text: expected a string"},
        BadContract{"[latency]\nttft = 500",
                    "latency.ttft: expected a string with a unit, such as \"500 ms\""},
        BadContract{"[latency]\nttft = \"500\"", "expected a duration with a unit"},
        BadContract{"[latency]\ntpot = \"0 ms\"", "latency.tpot: 0 ms cannot hold"},
        BadContract{"[latency]\nttft = \"-5 ms\"", "expected a non-negative number"},
        BadContract{"[latency]\nttft = \"2 s\"\ne2e = \"1 s\"", "ttft (2 s) is longer than e2e (1 s)"},
        BadContract{"[memory]\nresident = \"1 parsec\"", "unknown unit 'parsec'"},
        BadContract{"[memory]\nresident = \"0\"", "memory.resident: 0 cannot hold"},
        BadContract{"[workload]\nprompt_tokens = 0", "expected an integer from 1"},
        BadContract{"[workload]\nconcurrency = 2.5", "workload.concurrency: expected an integer"},
        BadContract{"[workload]\noutput_tokens = 99999999999", "expected an integer from 1"},
        BadContract{"[quality]\nmax_mean_kl = 0.1\n[pressure]\nmax_mean_kl = 0.05",
                    "pressure.max_mean_kl: 0.05 is tighter than the contract's own 0.1"},
        BadContract{"[quality]\nmin_top1 = 0.8\n[pressure]\nmin_top1 = 0.9", "tighter"},
        BadContract{"[search]\nchoose = \"luck\"", "expected \"time\" or \"memory\", found \"luck\""},
        BadContract{"[search]\ncandidates = []", "expected a list of precisions"},
        BadContract{"[search]\ncandidates = [3]", "expected strings"},
        BadContract{"[search]\ncandidates = [\"w=int3 a=f32 kv=f32\"]", "search.candidates"},
        BadContract{"model = \"a\nb\"", "c.toml:1"}, BadContract{"[quality", "c.toml:1"},
        BadContract{"model = \"a\"\nmodel = \"b\"", "c.toml:2"}, BadContract{"\xff\xfe", "c.toml"}));

TEST(Contract, missing_file_is_said) {
  const auto contract = read_contract("/nonexistent/contract.toml");
  ASSERT_FALSE(contract);
  EXPECT_EQ(contract.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace assay
