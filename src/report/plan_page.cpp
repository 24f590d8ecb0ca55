#include "report/plan_page.h"

#include <algorithm>

#include "base/units.h"
#include "report/svg_chart.h"

namespace assay {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6b7e; --paper: #ffffff; --line: #d8dee8; --good: #1f7a4d;
  --bad: #b3402a; --pick: #1d5fd1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf2; --soft: #98a5b8; --paper: #131820; --line: #2c3645;
  --good: #58c48f; --bad: #ee8068; --pick: #7cacff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1180px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.soft { color: var(--soft); } .answer { font-size: 1.1rem; border-left: 4px solid var(--pick); padding: .4rem 1rem; }
.answer.none { border-color: var(--bad); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: right; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; } td:last-child { white-space: normal; min-width: 13rem; }
tr.chosen td { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
code { font: .9em ui-monospace, monospace; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--soft); } .grid { stroke: var(--line); }
circle.chosen { fill: var(--pick); } circle.holds { fill: var(--good); } circle.broken { fill: var(--bad); }
path { fill: none; stroke-width: 2; }
.line0 { stroke: #1d5fd1; } .line1 { stroke: #b3402a; } .line2 { stroke: #1f7a4d; } .line3 { stroke: #8a4fc7; }
.line4 { stroke: #b07a12; } .line5 { stroke: #12808a; } .line6 { stroke: #c2407f; } .line7 { stroke: #6b7685; }
svg .legend0 { fill: #1d5fd1; } svg .legend1 { fill: #b3402a; } svg .legend2 { fill: #1f7a4d; }
svg .legend3 { fill: #8a4fc7; } svg .legend4 { fill: #b07a12; } svg .legend5 { fill: #12808a; }
svg .legend6 { fill: #c2407f; } svg .legend7 { fill: #6b7685; }
@media print { body { margin: 0; max-width: none; } }
)css";

bool is_chosen(const Plan& plan, const Candidate& candidate) {
  return plan.chosen() == &candidate;
}

std::string answer(const Plan& plan) {
  if (const Candidate* chosen = plan.chosen()) {
    return fmt::format(
        "<p class=\"answer\">Chosen: <code>{}</code>. It holds every bound of the contract and costs {} of "
        "machine time "
        "per request ({} tokens in, {} out, {} at once).</p>",
        escape_html(to_string(chosen->precision)), format_seconds(chosen->request_seconds),
        plan.contract.workload.prompt_tokens, plan.contract.workload.output_tokens,
        plan.contract.workload.concurrency);
  }
  return "<p class=\"answer none\">No candidate holds the contract. The table says which bound each one "
         "breaks, and by "
         "how much.</p>";
}

std::string verdict_cell(const Plan& plan, const Candidate& candidate) {
  if (candidate.failure)
    return fmt::format("<span class=\"bad\">failed: {}</span>", escape_html(*candidate.failure));
  if (is_chosen(plan, candidate)) return "<span class=\"good\">chosen</span>";
  if (candidate.holds) return "<span class=\"good\">holds</span>";
  std::string text;
  for (const BrokenBound& bound : candidate.broken)
    text += (text.empty() ? "" : "; ") + escape_html(describe(bound));
  return fmt::format("<span class=\"bad\">breaks {}</span>", text);
}

std::string candidate_row(const Plan& plan, const Candidate& candidate) {
  std::string row =
      fmt::format("<tr{}><td><code>{}</code></td>", is_chosen(plan, candidate) ? " class=\"chosen\"" : "",
                  escape_html(to_string(candidate.precision)));
  if (candidate.quality) {
    const QualityRecord& quality = *candidate.quality;
    row += fmt::format(
        "<td title=\"95 % interval {:.5f} to {:.5f}\">{:.5f}</td><td>{:.3f}</td><td>{:.1f} %</td>"
        "<td>{:+.2f} %</td>",
        quality.mean_kl_low, quality.mean_kl_high, quality.mean_kl, quality.p999_kl,
        quality.top1_agreement * 100, quality.perplexity_increase * 100);
  } else {
    row += "<td>-</td><td>-</td><td>-</td><td>-</td>";
  }
  if (candidate.speed) {
    const SpeedRecord& speed = *candidate.speed;
    row += fmt::format(
        "<td title=\"{:.0f} to {:.0f}, {} runs\">{:.0f}</td><td title=\"{:.1f} to {:.1f}, {} runs\">{:.1f}"
        "</td><td>{}</td>",
        speed.prefill_tokens_per_second.low, speed.prefill_tokens_per_second.high,
        speed.prefill_tokens_per_second.n, speed.prefill_tokens_per_second.median,
        speed.decode_tokens_per_second.low, speed.decode_tokens_per_second.high,
        speed.decode_tokens_per_second.n, speed.decode_tokens_per_second.median,
        format_seconds(speed.ttft_seconds.median));
  } else {
    row += "<td>-</td><td>-</td><td>-</td>";
  }
  row += candidate.memory ? fmt::format("<td>{}</td>", format_bytes(candidate.memory->resident_bytes()))
                          : "<td>-</td>";
  return row + fmt::format("<td>{}</td></tr>\n", verdict_cell(plan, candidate));
}

std::string table(const Plan& plan) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>precision</th><th>mean KL, nats</th><th>99.9 % "
      "KL</th><th>top-1</th>"
      "<th>perplexity</th><th>prefill, tokens/s</th><th>decode, tokens/s</th><th>TTFT</th><th>resident</th>"
      "<th>verdict</th></tr></thead><tbody>\n";
  for (const Candidate& candidate : plan.candidates) html += candidate_row(plan, candidate);
  return html + "</tbody></table></div>\n";
}

std::string frontier(const Plan& plan) {
  std::vector<ChartPoint> points;
  for (const Candidate& candidate : plan.candidates) {
    if (!candidate.quality || !candidate.speed) continue;
    points.push_back({.x = candidate.request_seconds,
                      .y = candidate.quality->mean_kl,
                      .label = to_string(candidate.precision) + (candidate.on_frontier ? " *" : ""),
                      .css_class = is_chosen(plan, candidate) ? "chosen"
                                   : candidate.holds          ? "holds"
                                                              : "broken"});
  }
  if (points.empty()) return {};
  return "<h2>Quality against time</h2>" +
         scatter_chart(points, {.title = "machine time per request, s", .logarithmic = false},
                       {.title = "mean KL, nats per token", .logarithmic = true}) +
         "<p class=\"soft\">Lower left is better. A star marks the frontier: nothing else is at least as "
         "good in time, "
         "quality and memory.</p>";
}

std::string layer_growth(const Plan& plan) {
  std::vector<ChartLine> lines;
  for (const Candidate& candidate : plan.candidates) {
    if (!candidate.quality || candidate.quality->layers.empty()) continue;
    ChartLine& line = lines.emplace_back();
    line.label = to_string(candidate.precision);
    for (const LayerError& layer : candidate.quality->layers) {
      line.x.push_back(layer.layer);
      line.y.push_back(layer.relative_error);
    }
  }
  if (lines.empty()) return {};
  return "<h2>Error by layer</h2>" +
         line_chart(lines, {.title = "layer (-1: embedding)", .logarithmic = false},
                    {.title = "relative error of the hidden state", .logarithmic = true});
}

std::string ladder(const Plan& plan) {
  if (plan.ladder.size() < 2) return {};
  std::string html = "<h2>Ladder</h2><p class=\"soft\">Rungs to step down under pressure.</p><ol>";
  for (const int index : plan.ladder) {
    const Candidate& rung = plan.candidates[static_cast<size_t>(index)];
    html += fmt::format("<li><code>{}</code>: {} per request, mean KL {:.5f}</li>",
                        escape_html(to_string(rung.precision)), format_seconds(rung.request_seconds),
                        rung.quality ? rung.quality->mean_kl : 0.0);
  }
  return html + "</ol>";
}

std::string how(const Plan& plan) {
  std::string html = "<h2>How this was measured</h2><p>";
  const auto measured = std::ranges::find_if(
      plan.candidates, [](const Candidate& candidate) { return candidate.quality.has_value(); });
  if (measured != plan.candidates.end()) {
    const TextSource& text = measured->quality->text;
    html += fmt::format(
        "Quality: against the checkpoint computed in f32, over {} ({} sequences, {} positions scored, text "
        "{}). KL is D(reference || candidate). ",
        escape_html(text.name), text.n_sequences, text.n_scored, escape_html(text.hash));
  }
  html +=
      "Speed: medians of repeated runs on this machine with nothing else running; point at a number for its "
      "range. "
      "Resident: weights, KV pages of the workload and workspace.</p>";
  const MachineRecord& machine = plan.machine;
  html += fmt::format(
      "<p>Machine: {}, {} CPUs, {} of memory{}.<br>Model: {} (xxh64 {}).<br>assay {} ({}, {}), {}.</p>",
      escape_html(machine.cpu_model), machine.cpus, format_bytes(machine.memory_bytes),
      machine.read_bytes_per_second
          ? fmt::format(" read at {:.1f} GB/s", *machine.read_bytes_per_second * 1e-9)
          : "",
      escape_html(plan.model.path), escape_html(plan.model.hash), plan.provenance.assay_version,
      escape_html(plan.provenance.commit), escape_html(plan.provenance.compiler),
      escape_html(plan.provenance.started_at));
  return html;
}

}  // namespace

std::string plan_page(const Plan& plan) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>assay: plan</title>\n<style>{}</style></head><body>\n"
      "<h1>Precision plan</h1><p class=\"soft\">{}</p>\n{}\n<h2>Candidates</h2>\n{}{}{}{}{}</body></html>\n",
      kStyle, escape_html(plan.model.path), answer(plan), table(plan), frontier(plan), layer_growth(plan),
      ladder(plan), how(plan));
}

}  // namespace assay
