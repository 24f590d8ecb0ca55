// Judges three invented candidates against a contract and prints the table with the choice.
#include <cstdio>

#include "plan/candidate_table.h"
#include "plan/choice.h"
#include "plan/verdict.h"

namespace {

assay::Candidate candidate(const char* precision, double mean_kl, double decode_rate, uint64_t bytes) {
  assay::Candidate made;
  made.precision = *assay::parse_precision(precision);
  made.quality.emplace().mean_kl = mean_kl;
  made.speed.emplace().prefill_tokens_per_second.median = 10 * decode_rate;
  made.speed->decode_tokens_per_second.median = decode_rate;
  made.memory.emplace().weight_bytes = bytes;
  return made;
}

}  // namespace

int main() {
  assay::Plan plan;
  plan.contract.quality.max_mean_kl = 0.01;
  plan.candidates = {candidate("w=bf16 a=bf16 kv=bf16", 0.0003, 60, 270 << 20),
                     candidate("w=int8:32 a=int8 kv=bf16", 0.006, 180, 160 << 20),
                     candidate("w=int4:128 a=int8 kv=int8", 0.7, 290, 90 << 20)};
  for (assay::Candidate& each : plan.candidates) assay::judge(plan.contract, each);
  assay::mark_frontier(plan.candidates);
  if (const auto chosen = assay::choose(plan.candidates, plan.contract.search)) {
    plan.ladder = assay::make_ladder(plan.candidates, plan.contract, *chosen);
  }
  std::fputs(assay::candidate_table(plan).c_str(), stdout);
  return plan.chosen() == nullptr ? 1 : 0;
}
