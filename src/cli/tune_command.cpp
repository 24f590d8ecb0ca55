// `assay tune CONTRACT`: measures, chooses, writes plan.json and report.html.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/known_models.h"
#include "plan/candidate_table.h"
#include "records/json_codec.h"
#include "report/plan_page.h"
#include "tune/tune.h"

namespace assay {
namespace {

volatile std::sig_atomic_t interrupted = 0;

struct TuneFlags {
  std::string contract;
  std::string model;
  std::string text;
  std::string output = "plan.json";
  std::string report = "report.html";
  std::string isa = "auto";
  int threads = 0;
  bool pin_threads = false;
  bool fresh = false;
};

// Notes as lines, progress as one line that is rewritten; on a pipe, a line every ten seconds.
class Terminal final : public TuneObserver {
 public:
  void on_note(const std::string& text) override {
    clear();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  bool on_progress(double share, const std::string& what) override {
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    if (total_.seconds() - last_ < (terminal ? 0.2 : 10.0)) return interrupted == 0;
    last_ = total_.seconds();
    const std::string left = share > 0.02 ? format_seconds(last_ / share * (1 - share)) + " left"
                                          : std::string("estimating time left");
    if (terminal) {
      constexpr int kBar = 24;
      const int filled = static_cast<int>(share * kBar);
      std::fprintf(stderr, "\r\033[K[%s%s] %3.0f %%  %s  %s",
                   std::string(static_cast<size_t>(filled), '#').c_str(),
                   std::string(static_cast<size_t>(kBar - filled), '.').c_str(), share * 100, left.c_str(),
                   what.c_str());
      drawn_ = true;
    } else {
      std::fprintf(stderr, "%3.0f %%  %s  %s\n", share * 100, left.c_str(), what.c_str());
    }
    return interrupted == 0;
  }

  void on_candidate(const Candidate& candidate, bool from_earlier_run) override {
    clear();
    std::printf("measured   %s%s\n", to_string(candidate.precision).c_str(),
                from_earlier_run ? " (from an earlier run)" : "");
    std::fflush(stdout);
  }

  void clear() {
    if (drawn_) std::fprintf(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  Stopwatch total_;
  double last_ = -100;
  bool drawn_ = false;
};

// Says what to do next, or how far the best candidate is from holding.
int conclude(const Plan& plan, const TuneFlags& flags) {
  std::printf("\n%s\n", candidate_table(plan).c_str());
  std::printf("plan    %s\nreport  %s\n", flags.output.c_str(), flags.report.c_str());
  if (const Candidate* chosen = plan.chosen()) {
    std::printf("chosen  %s: the cheapest that holds, %s of machine time per request\n",
                to_string(chosen->precision).c_str(), format_seconds(chosen->request_seconds).c_str());
    std::printf("next    assay serve --plan %s\n", flags.output.c_str());
    return kExitDone;
  }
  std::fprintf(stderr,
               "assay: no candidate holds the contract; the table says which bound each one breaks\n");
  return kExitContractBroken;
}

Result<TuneOptions> options_of(const TuneFlags& flags) {
  TuneOptions options;
  ASSIGN_OR_RETURN(options.contract, read_contract(flags.contract));
  const std::string model = flags.model.empty() ? options.contract.model : flags.model;
  if (model.empty()) {
    return fail(ErrorCode::kInvalidArgument, flags.contract,
                "names no model; add model = \"...\" or pass --model");
  }
  ASSIGN_OR_RETURN(options.model, resolve_model(model));
  if (options.contract.text && std::filesystem::path(*options.contract.text).is_relative()) {
    options.contract.text =
        (std::filesystem::path(flags.contract).parent_path() / *options.contract.text).string();
  }
  if (!flags.text.empty()) options.contract.text = flags.text;
  options.measurements = flags.output + ".measurements";
  options.isa = flags.isa;
  options.threads = flags.threads;
  options.pin_threads = flags.pin_threads;
  options.fresh = flags.fresh;
  options.command = "assay tune " + flags.contract;
  return options;
}

int run_tune(const TuneFlags& flags) {
  auto options = options_of(flags);
  if (!options) return report_error(options.error());
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::signal(SIGTERM, [](int) { interrupted = 1; });
  Terminal terminal;
  const auto plan = tune(*options, terminal);
  terminal.clear();
  if (!plan) return report_error(plan.error());
  if (auto written = write_file_atomically(flags.output, record_to_json(*plan)); !written) {
    return report_error(written.error());
  }
  if (auto written = write_file_atomically(flags.report, plan_page(*plan)); !written) {
    return report_error(written.error());
  }
  return conclude(*plan, flags);
}

}  // namespace

Run configure_tune_command(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  app.add_option("contract", flags->contract, "the contract, a TOML file (see docs/contract.md)")->required();
  app.add_option("--model", flags->model, "checkpoint or short name; overrides the contract's");
  app.add_option("--text", flags->text, "measure quality over this file; overrides the contract's");
  app.add_option("-o,--output", flags->output,
                 "the plan to write; measurements are kept in OUTPUT.measurements")
      ->capture_default_str();
  app.add_option("--report", flags->report, "the page to write")->capture_default_str();
  app.add_option("--threads", flags->threads, "threads; 0: every CPU this process may use")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--pin-threads", flags->pin_threads, "keep each thread on one CPU, physical cores first");
  app.add_option("--isa", flags->isa, "kernel table: auto, portable, avx2, avx512")->capture_default_str();
  app.add_flag("--fresh", flags->fresh, "measure again what an earlier run has measured");
  return [flags] { return run_tune(*flags); };
}

}  // namespace assay
