#include "report/plan_page.h"

#include <gtest/gtest.h>

#include <limits>

#include "report/svg_chart.h"

namespace assay {
namespace {

Candidate measured(const char* precision, double kl, double rate) {
  Candidate candidate;
  candidate.precision = *parse_precision(precision);
  candidate.quality.emplace().mean_kl = kl;
  candidate.quality->layers = {{-1, 0.0}, {0, kl}, {1, 2 * kl}};
  candidate.speed.emplace().prefill_tokens_per_second.median = rate;
  candidate.speed->decode_tokens_per_second.median = rate;
  candidate.memory.emplace().weight_bytes = 1 << 20;
  candidate.request_seconds = 100 / rate;
  candidate.holds = kl < 0.1;
  return candidate;
}

Plan sample_plan() {
  Plan plan;
  plan.model.path = "<script>alert(\"model\")</script>";
  plan.candidates = {measured("w=bf16 a=bf16 kv=bf16", 0.001, 10),
                     measured("w=int8:32 a=int8 kv=bf16", 0.02, 40),
                     measured("w=int4:128 a=int8 kv=int8", 0.7, 50)};
  plan.candidates[2].broken = {{"quality.max_mean_kl", 0.1, 0.7, "nats"}};
  plan.candidates.push_back({});
  plan.candidates.back().failure = "needs <more> memory";
  plan.ladder = {1, 2};
  return plan;
}

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(PlanPage, names_choice_candidates_and_broken_bounds) {
  const std::string page = plan_page(sample_plan());
  EXPECT_NE(page.find("Chosen: <code>w=int8:32 a=int8 kv=bf16</code>"), std::string::npos);
  EXPECT_NE(page.find("breaks max_mean_kl 0.7 nats &gt; 0.1 nats"), std::string::npos);
  EXPECT_NE(page.find("failed: needs &lt;more&gt; memory"), std::string::npos);
  EXPECT_EQ(count(page, "<tr"), 1U + 4U);
  EXPECT_EQ(count(page, "<svg"), 2U);
}

TEST(PlanPage, is_self_contained_and_escapes_its_input) {
  const std::string page = plan_page(sample_plan());
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(count(page, "<table"), count(page, "</table>"));
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
}

TEST(PlanPage, without_a_choice_says_so) {
  Plan plan = sample_plan();
  plan.ladder.clear();
  EXPECT_NE(plan_page(plan).find("No candidate holds the contract"), std::string::npos);
  EXPECT_NE(plan_page(Plan{}).find("No candidate holds"), std::string::npos);
}

TEST(Chart, degenerate_and_not_finite_values_draw_no_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool logarithmic : {false, true}) {
    const Axis axis{.title = "x", .logarithmic = logarithmic};
    for (const auto& points : {std::vector<ChartPoint>{},
                               {{1, 1, "one", "holds"}},
                               {{0, 0, "zero", "holds"}, {nan, 1, "nan", "broken"}}}) {
      const std::string svg = scatter_chart(points, axis, axis);
      EXPECT_EQ(svg.find("nan"), svg.find("nan</text>"));  // only as a label
      EXPECT_EQ(svg.find("inf"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace assay
