// `assay inspect MODEL`: what is in a checkpoint.
#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/inspection.h"
#include "cli/known_models.h"
#include "modelfile/checkpoint.h"

namespace assay {
namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
  bool check_values = false;
};

Result<Inspection> inspect_model(const InspectOptions& options) {
  ASSIGN_OR_RETURN(const std::filesystem::path path, resolve_model(options.model));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  return inspect(checkpoint, options.check_values);
}

int run(const InspectOptions& options) {
  const auto inspection = inspect_model(options);
  if (!inspection) return report_error(inspection.error());
  const std::string text =
      options.json ? boost::json::serialize(to_json(*inspection)) + "\n" : describe(*inspection);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return inspection->broken_tensors.empty() ? kExitDone : kExitFailed;
}

}  // namespace

Run configure_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  app.add_option("model", options->model, "GGUF file, safetensors file or folder, or a short name")
      ->required();
  app.add_flag("--json", options->json, "print one JSON object");
  app.add_flag("--check-values", options->check_values,
               "decode every tensor and look for NaN and infinity (exit code 1 when there are any)");
  return [options] { return run(*options); };
}

}  // namespace assay
