// `assay quality MODEL`: how far one precision is from the checkpoint computed in f32.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "cli/command.h"
#include "cli/known_models.h"
#include "cli/model_options.h"
#include "quality/reference.h"
#include "records/json_codec.h"
#include "tune/candidates.h"
#include "tune/reference_text.h"

namespace assay {
namespace {

constexpr int kMaxBatchTokens = 512;

struct QualityFlags {
  ModelOptions model;
  std::string text;
  int window = 512;
  int windows = 0;
  int continuation = 32;
  uint64_t seed = 1;
  bool perplexity_only = false;
  bool json = false;
};

// One line on a terminal that is rewritten; nothing on a pipe.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)), shown_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool operator()(double share) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%s %3.0f %%", what_.c_str(), share * 100);
    return true;
  }
  bool operator()(int64_t done, int64_t total) const {
    return (*this)(static_cast<double>(done) / static_cast<double>(total));
  }

 private:
  std::string what_;
  bool shown_;
};

Result<QualityText> text_of(const QualityFlags& flags, const LoadedModel& reference) {
  if (flags.text.empty()) {
    const ProgressLine line("reference continues the prompts");
    return continue_prompts(reference, flags.seed, flags.continuation, [&](double share) { return line(share); });
  }
  ASSIGN_OR_RETURN(const std::string content, read_file(flags.text));
  return make_windows(*reference.tokenizer(), content, flags.text, flags.window, flags.windows);
}

void print_perplexity(const QualityText& text, const Precision& precision, const Perplexity& perplexity, bool json) {
  if (json) {
    std::printf("{\"precision\": \"%s\", \"perplexity\": %.15g, \"standard_error\": %.15g, \"n_scored\": %lld}\n",
                to_string(precision).c_str(), perplexity.value, perplexity.standard_error,
                static_cast<long long>(perplexity.n_scored));
    return;
  }
  std::printf("text         %s: %zu sequences, %lld positions scored\n", text.name.c_str(), text.sequences.size(),
              static_cast<long long>(perplexity.n_scored));
  std::printf("precision    %s\n", to_string(precision).c_str());
  std::printf("perplexity   %.4f +- %.4f (standard error)\n", perplexity.value, perplexity.standard_error);
}

void print_record(const QualityRecord& record) {
  std::printf("text         %s: %lld sequences, %lld positions scored\n", record.text.name.c_str(),
              static_cast<long long>(record.text.n_sequences), static_cast<long long>(record.text.n_scored));
  std::printf("reference    %s, perplexity %.4f\n", to_string(record.reference).c_str(), record.reference_perplexity);
  std::printf("candidate    %s, perplexity %.4f (%+.3f %%)\n", to_string(record.candidate).c_str(), record.perplexity,
              record.perplexity_increase * 100);
  std::printf("mean KL      %.6f nats per token (95 %% interval %.6f to %.6f)\n", record.mean_kl, record.mean_kl_low,
              record.mean_kl_high);
  std::printf("KL quantiles median %.6f, 99 %% %.5f, 99.9 %% %.5f, max %.5f\n", record.median_kl, record.p99_kl,
              record.p999_kl, record.max_kl);
  std::printf("top-1        %.2f %% agree (95 %% interval %.2f to %.2f)\n", record.top1_agreement * 100,
              record.top1_low * 100, record.top1_high * 100);
  std::printf("top-%d       %.2f %% overlap\n", record.top_k, record.top_k_overlap * 100);
  if (record.n_not_finite > 0) {
    std::printf("NOT FINITE   %lld positions gave NaN or infinity\n", static_cast<long long>(record.n_not_finite));
  }
  std::printf("error by layer (relative)\n");
  for (size_t i = 0; i < record.layers.size(); ++i) {
    std::printf("%6d %.6f%s", record.layers[i].layer, record.layers[i].relative_error,
                i % 4 == 3 || i + 1 == record.layers.size() ? "\n" : "   ");
  }
}

Result<int> run_quality(const QualityFlags& flags) {
  if (flags.perplexity_only) {
    if (flags.text.empty()) {
      return fail(ErrorCode::kInvalidArgument, "--perplexity", "needs a text: pass --text FILE");
    }
    ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(flags.model, kMaxBatchTokens, true));
    ASSIGN_OR_RETURN(const QualityText text, text_of(flags, loaded));
    const ProgressLine line("perplexity");
    ASSIGN_OR_RETURN(const Perplexity perplexity, measure_perplexity(*loaded.model(), text, std::cref(line)));
    line(1.0);
    print_perplexity(text, loaded.model()->precision(), perplexity, flags.json);
    return kExitDone;
  }
  ModelOptions reference_options = flags.model;
  reference_options.precision = to_string(reference_precision());
  ASSIGN_OR_RETURN(const LoadedModel reference_model, load_model(reference_options, kMaxBatchTokens, true));
  ASSIGN_OR_RETURN(QualityText text, text_of(flags, reference_model));
  auto reference = [&] {
    const ProgressLine line("reference pass (f32)");
    return QualityReference::record(reference_model.model(), std::move(text), std::cref(line));
  }();
  if (!reference) return std::unexpected(reference.error());
  ASSIGN_OR_RETURN(const LoadedModel candidate, load_model(flags.model, kMaxBatchTokens, true));
  auto record = [&] {
    const ProgressLine line("candidate pass");
    return reference->compare(*candidate.model(), std::cref(line));
  }();
  if (!record) return std::unexpected(record.error());
  if (flags.json) {
    std::fputs(record_to_json(*record).c_str(), stdout);
  } else {
    print_record(*record);
  }
  return kExitDone;
}

}  // namespace

Run configure_quality_command(CLI::App& app) {
  auto flags = std::make_shared<QualityFlags>();
  app.add_option("model", flags->model.model, "checkpoint or short name")->required();
  add_precision_options(app, flags->model);
  app.add_option("--text", flags->text, "measure over this file instead of the built-in prompts");
  app.add_option("--window", flags->window, "tokens per window of the file; the second half is scored")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--windows", flags->windows, "at most this many windows; 0: all")->check(CLI::Range(0, 1 << 30));
  app.add_option("--continuation", flags->continuation, "tokens by which the reference continues each built-in prompt")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seed", flags->seed, "seed of those continuations")->capture_default_str();
  app.add_flag("--perplexity", flags->perplexity_only, "only the perplexity of this precision over --text");
  app.add_flag("--json", flags->json, "print the record as JSON");
  return [flags] {
    const auto code = run_quality(*flags);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace assay
