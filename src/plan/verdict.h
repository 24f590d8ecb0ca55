// Holds a measured candidate against a contract.
// Pure functions; thread safe.
#pragma once

#include "records/contract.h"
#include "records/plan.h"

namespace assay {

// Machine time that one request of the workload costs, in seconds:
//   prompt_tokens / prefill rate + output_tokens / decode rate of all sequences together.
double request_seconds(const SpeedRecord& speed, const Workload& workload);
// E2E of one request, in seconds: TTFT + (output_tokens - 1) * TPOT.
double end_to_end_seconds(const SpeedRecord& speed, const Workload& workload);

// The bounds of `quality` that the record breaks. `section` names them: "quality" or "pressure".
std::vector<BrokenBound> broken_quality(const QualityBounds& quality, const QualityRecord& record,
                                        std::string_view section);

// Fills broken, holds and request_seconds. A candidate with a failure, or without a measurement that a bound
// needs, does not hold.
void judge(const Contract& contract, Candidate& candidate);

}  // namespace assay
