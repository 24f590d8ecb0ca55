#include "records/plan.h"

#include "base/file.h"
#include "records/json_codec.h"

namespace assay {

Result<Plan> read_plan(const std::filesystem::path& path) {
  constexpr uint64_t kMaxPlanBytes = 64 << 20;
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxPlanBytes));
  ASSIGN_OR_RETURN(Plan plan, record_from_json<Plan>(text, path.string()));
  for (const int index : plan.ladder) {
    if (index < 0 || static_cast<size_t>(index) >= plan.candidates.size()) {
      return fail(ErrorCode::kCorrupt, path.string(), "ladder names candidate {}, there are {}", index,
                  plan.candidates.size());
    }
  }
  if (plan.ladder.empty()) {
    return fail(ErrorCode::kInvalidArgument, path.string(),
                "holds no precision to serve: no candidate met the contract when it was made");
  }
  return plan;
}

}  // namespace assay
