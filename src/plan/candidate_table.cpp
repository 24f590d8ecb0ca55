#include "plan/candidate_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.h"

namespace assay {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

std::string mark(const Plan& plan, size_t index) {
  const auto rung = std::ranges::find(plan.ladder, static_cast<int>(index));
  if (rung == plan.ladder.end()) return "  ";
  return rung == plan.ladder.begin() ? "->" : fmt::format("{:2}", rung - plan.ladder.begin() + 1);
}

std::string verdict(const Plan& plan, size_t index) {
  const Candidate& candidate = plan.candidates[index];
  if (candidate.failure) return "failed: " + *candidate.failure;
  if (candidate.holds)
    return !plan.ladder.empty() && plan.ladder.front() == static_cast<int>(index) ? "chosen" : "holds";
  std::string text = "breaks";
  for (const BrokenBound& bound : candidate.broken) text += (text == "breaks" ? " " : ", ") + describe(bound);
  return text;
}

Row row_of(const Plan& plan, size_t index) {
  const Candidate& candidate = plan.candidates[index];
  Row row;
  row.fill("-");
  row[0] = mark(plan, index) + " " + to_string(candidate.precision);
  if (candidate.quality) {
    row[1] = fmt::format("{:.5f}", candidate.quality->mean_kl);
    row[2] = fmt::format("{:.1f} %", candidate.quality->top1_agreement * 100);
    row[3] = fmt::format("{:+.2f} %", candidate.quality->perplexity_increase * 100);
  }
  if (candidate.speed) {
    row[4] = fmt::format("{:.0f}", candidate.speed->prefill_tokens_per_second.median);
    row[5] = fmt::format("{:.1f}", candidate.speed->decode_tokens_per_second.median);
  }
  if (candidate.memory) row[6] = format_bytes(candidate.memory->resident_bytes());
  row[7] = verdict(plan, index);
  return row;
}

}  // namespace

std::string candidate_table(const Plan& plan) {
  std::vector<Row> rows = {
      {"   precision", "mean KL", "top-1", "perplexity", "prefill/s", "decode/s", "resident", "verdict"}};
  for (size_t i = 0; i < plan.candidates.size(); ++i) rows.push_back(row_of(plan, i));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t c = 1; c + 1 < kColumns; ++c) text += fmt::format("  {:>{}}", row[c], widths[c]);
    text += "  " + row[kColumns - 1] + "\n";
  }
  return text;
}

}  // namespace assay
