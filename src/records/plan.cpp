#include "records/plan.h"

#include <algorithm>

#include "base/file.h"
#include "base/units.h"
#include "records/json_codec.h"

namespace assay {
namespace {

std::string with_unit(double value, const std::string& unit) {
  if (unit == "s") return format_seconds(value);
  if (unit == "B") return format_bytes(static_cast<uint64_t>(std::max(0.0, value)));
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

}  // namespace

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


std::string describe(const BrokenBound& bound) {
  const bool is_floor = bound.measured < bound.limit;
  const size_t dot = bound.bound.find('.');
  std::string name = dot == std::string::npos ? bound.bound : bound.bound.substr(dot + 1);
  return fmt::format("{} {} {} {}", name, with_unit(bound.measured, bound.unit), is_floor ? "<" : ">",
                     with_unit(bound.limit, bound.unit));
}

}  // namespace assay
