#include "plan/verdict.h"

#include <cmath>

namespace assay {
namespace {

// `measured` must not be above `limit`. NaN is above everything.
void at_most(std::vector<BrokenBound>& broken, std::string bound, std::optional<double> limit,
             double measured, std::string unit) {
  if (limit && !(measured <= *limit)) broken.push_back({std::move(bound), *limit, measured, std::move(unit)});
}

void at_least(std::vector<BrokenBound>& broken, std::string bound, std::optional<double> limit,
              double measured, std::string unit) {
  if (limit && !(measured >= *limit)) broken.push_back({std::move(bound), *limit, measured, std::move(unit)});
}

void judge_speed(const Contract& contract, const SpeedRecord& speed, std::vector<BrokenBound>& broken) {
  at_most(broken, "latency.ttft", contract.latency.ttft_seconds, speed.ttft_seconds.median, "s");
  at_most(broken, "latency.tpot", contract.latency.tpot_seconds, speed.tpot_seconds.median, "s");
  at_most(broken, "latency.e2e", contract.latency.e2e_seconds, end_to_end_seconds(speed, contract.workload),
          "s");
  at_least(broken, "throughput.prefill", contract.throughput.prefill_tokens_per_second,
           speed.prefill_tokens_per_second.median, "tokens/s");
  at_least(broken, "throughput.decode", contract.throughput.decode_tokens_per_second,
           speed.decode_tokens_per_second.median, "tokens/s");
}

}  // namespace

double request_seconds(const SpeedRecord& speed, const Workload& workload) {
  return workload.prompt_tokens / speed.prefill_tokens_per_second.median +
         workload.output_tokens / speed.decode_tokens_per_second.median;
}

double end_to_end_seconds(const SpeedRecord& speed, const Workload& workload) {
  return speed.ttft_seconds.median + (workload.output_tokens - 1) * speed.tpot_seconds.median;
}

std::vector<BrokenBound> broken_quality(const QualityBounds& quality, const QualityRecord& record,
                                        std::string_view section) {
  std::vector<BrokenBound> broken;
  const auto named = [&](std::string_view key) { return fmt::format("{}.{}", section, key); };
  at_most(broken, named("max_mean_kl"), quality.max_mean_kl, record.mean_kl, "nats");
  at_most(broken, named("max_p999_kl"), quality.max_p999_kl, record.p999_kl, "nats");
  at_least(broken, named("min_top1"), quality.min_top1, record.top1_agreement, "");
  at_most(broken, named("max_perplexity_increase"), quality.max_perplexity_increase,
          record.perplexity_increase, "");
  // Whatever the contract says: a model that computes NaN does not answer.
  if (record.n_not_finite > 0) {
    broken.push_back({named("finite_logits"), 0, static_cast<double>(record.n_not_finite), "positions"});
  }
  return broken;
}

void judge(const Contract& contract, Candidate& candidate) {
  candidate.broken.clear();
  candidate.holds = false;
  candidate.request_seconds = std::nan("");
  if (candidate.failure) return;
  if (candidate.quality) candidate.broken = broken_quality(contract.quality, *candidate.quality, "quality");
  if (candidate.speed) {
    judge_speed(contract, *candidate.speed, candidate.broken);
    candidate.request_seconds = request_seconds(*candidate.speed, contract.workload);
  }
  if (candidate.memory && contract.memory.resident_bytes) {
    at_most(candidate.broken, "memory.resident", static_cast<double>(*contract.memory.resident_bytes),
            static_cast<double>(candidate.memory->resident_bytes()), "B");
  }
  const bool measured = candidate.quality && candidate.speed && candidate.memory;
  candidate.holds = measured && candidate.broken.empty();
}

}  // namespace assay
