#include "modelfile/checkpoint.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "modelfile/checkpoint_builder.h"
#include "modelfile/gguf_reader.h"
#include "modelfile/gguf_vocab.h"
#include "modelfile/safetensors_checkpoint.h"
#include "modelfile/show_name.h"

namespace assay {

using modelfile_internal::show_name;

struct Checkpoint::State {
  CheckpointParts parts;
  std::string architecture;
  uint64_t file_bytes = 0;
  std::vector<size_t> by_name;  // indices of tensors, sorted by name
};

int64_t Tensor::n_values() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Result<Checkpoint> CheckpointBuilder::build(CheckpointParts parts) {
  auto state = std::make_unique<Checkpoint::State>();
  ASSIGN_OR_RETURN(state->architecture,
                   modelfile_internal::required(parts.metadata.text("general.architecture")));
  for (const MappedFile& file : parts.files) state->file_bytes += file.bytes().size();
  state->by_name.resize(parts.tensors.size());
  std::iota(state->by_name.begin(), state->by_name.end(), size_t{0});
  std::sort(state->by_name.begin(), state->by_name.end(),
            [&](size_t a, size_t b) { return parts.tensors[a].name < parts.tensors[b].name; });
  for (size_t i = 1; i < state->by_name.size(); ++i) {
    CHECK(parts.tensors[state->by_name[i - 1]].name != parts.tensors[state->by_name[i]].name);
  }
  state->parts = std::move(parts);
  return Checkpoint(std::move(state));
}

namespace modelfile_internal {

Result<Checkpoint> open_gguf(const std::filesystem::path& path, MappedFile file) {
  ASSIGN_OR_RETURN(GgufContents contents, parse_gguf(file.bytes(), path.string()));
  CheckpointParts parts{.path = path, .container = fmt::format("GGUF v{}", contents.version)};
  parts.tensors = std::move(contents.tensors);
  parts.metadata = Metadata(std::move(contents.metadata), path.string());
  ASSIGN_OR_RETURN(const auto n_parts, if_present(parts.metadata.integer("split.count")));
  if (n_parts.value_or(1) > 1) {
    return fail(ErrorCode::kUnsupported, path.string(),
                "is one of {} parts of a model; join them first (llama-gguf-split --merge)", *n_parts);
  }
  parts.files.push_back(std::move(file));
  parts.read_vocab = vocab_from_gguf;
  return CheckpointBuilder::build(std::move(parts));
}

}  // namespace modelfile_internal

namespace {

std::string_view first_bytes(const MappedFile& file, size_t count) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), std::min(count, bytes.size())};
}

std::unexpected<Error> not_a_checkpoint(const std::filesystem::path& path, const MappedFile& file) {
  const std::string_view start = first_bytes(file, 24);
  if (start.empty())
    return fail(ErrorCode::kCorrupt, path.string(), "is not a checkpoint: the file is empty");
  if (start.starts_with("PK\x03\x04") || start.starts_with("\x80\x02")) {
    return fail(
        ErrorCode::kUnsupported, path.string(),
        "is a Python pickle or zip, which may run code when loaded; convert it to safetensors or GGUF");
  }
  if (start.starts_with("tjgg") || start.starts_with("fmgg") || start.starts_with("lmgg")) {
    return fail(ErrorCode::kUnsupported, path.string(),
                "is a GGML file from before GGUF; convert it to GGUF");
  }
  return fail(ErrorCode::kCorrupt, path.string(),
              "is not a checkpoint: expected a GGUF or safetensors file, found one that starts with {}",
              show_name(start));
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return modelfile_internal::open_folder(path);
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (first_bytes(file, 4) == "GGUF") return modelfile_internal::open_gguf(path, std::move(file));
  const bool index = path.filename().string().ends_with(".safetensors.index.json");
  // Without the extension: the header length is below 2^32, and '{' follows it.
  const std::string_view start = first_bytes(file, 9);
  const bool header = start.size() == 9 && start.substr(4) == std::string_view("\0\0\0\0{", 5);
  if (index || header || path.extension() == ".safetensors")
    return modelfile_internal::open_safetensors_file(path);
  return not_a_checkpoint(path, file);
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::filesystem::path& Checkpoint::path() const {
  return state_->parts.path;
}
std::string_view Checkpoint::container() const {
  return state_->parts.container;
}
std::string_view Checkpoint::architecture() const {
  return state_->architecture;
}
bool Checkpoint::rope_halves() const {
  return state_->parts.rope_halves;
}
uint64_t Checkpoint::file_bytes() const {
  return state_->file_bytes;
}
std::span<const std::string> Checkpoint::warnings() const {
  return state_->parts.warnings;
}
std::span<const Tensor> Checkpoint::tensors() const {
  return state_->parts.tensors;
}

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto& tensors = state_->parts.tensors;
  const auto at =
      std::lower_bound(state_->by_name.begin(), state_->by_name.end(), name,
                       [&](size_t index, std::string_view wanted) { return tensors[index].name < wanted; });
  if (at == state_->by_name.end() || tensors[*at].name != name) return nullptr;
  return &tensors[*at];
}

std::span<const std::pair<std::string, MetadataValue>> Checkpoint::metadata() const {
  return state_->parts.metadata.entries();
}
const MetadataValue* Checkpoint::find_metadata(std::string_view key) const {
  return state_->parts.metadata.find(key);
}
Result<int64_t> Checkpoint::integer(std::string_view key) const {
  return state_->parts.metadata.integer(key);
}
Result<double> Checkpoint::number(std::string_view key) const {
  return state_->parts.metadata.number(key);
}
Result<std::string> Checkpoint::text(std::string_view key) const {
  return state_->parts.metadata.text(key);
}
Result<bool> Checkpoint::boolean(std::string_view key) const {
  return state_->parts.metadata.boolean(key);
}
Result<std::vector<double>> Checkpoint::numbers(std::string_view key) const {
  return state_->parts.metadata.numbers(key);
}
Result<VocabSpec> Checkpoint::vocab() const {
  return state_->parts.read_vocab(state_->parts.metadata);
}

}  // namespace assay
