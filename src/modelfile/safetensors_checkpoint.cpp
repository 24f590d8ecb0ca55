#include "modelfile/safetensors_checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

#include "modelfile/checkpoint_builder.h"
#include "modelfile/hf_config.h"
#include "modelfile/hf_tensor_names.h"
#include "modelfile/hf_tokenizer.h"
#include "modelfile/json_document.h"
#include "modelfile/safetensors_reader.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaximumConfigBytes = uint64_t{16} << 20;
constexpr uint64_t kMaximumIndexBytes = uint64_t{64} << 20;
constexpr size_t kMaximumShards = 4096;

// Which tensor lies in which shard.
struct ShardIndex {
  std::map<std::string, std::string> shard_of;  // tensor -> file name; empty for a single file
  std::vector<fs::path> shards;
};

Result<ShardIndex> read_index(const fs::path& path) {
  ASSIGN_OR_RETURN(const json::value document, read_json_file(path.string(), kMaximumIndexBytes));
  ASSIGN_OR_RETURN(const JsonReader root, as_object(document, path.string()));
  ASSIGN_OR_RETURN(const auto map, root.child("weight_map"));
  if (!map) return fail(ErrorCode::kCorrupt, path.string(), "weight_map is missing");
  std::set<std::string> files;
  ShardIndex index;
  for (const auto& member : map->object()) {
    const auto* text = member.value().if_string();
    const std::string file = text == nullptr ? std::string() : std::string(text->begin(), text->end());
    // A plain name: an index must not reach outside its folder.
    if (file.empty() || file.find('/') != std::string::npos || !file.ends_with(".safetensors")) {
      return fail(ErrorCode::kCorrupt, path.string(),
                  "weight_map {}: expected a .safetensors file name, found {}", show_name(member.key()),
                  show_name(file));
    }
    files.insert(file);
    index.shard_of.emplace(member.key(), file);
  }
  if (files.empty() || files.size() > kMaximumShards) {
    return fail(ErrorCode::kCorrupt, path.string(), "expected 1 to {} shards, found {}", kMaximumShards,
                files.size());
  }
  for (const std::string& file : files) index.shards.push_back(path.parent_path() / file);
  return index;
}

class SafetensorsOpener {
 public:
  SafetensorsOpener(fs::path path, fs::path folder) : folder_(std::move(folder)) {
    parts_.path = std::move(path);
    parts_.container = "safetensors";
    parts_.rope_halves = true;
  }

  Result<Checkpoint> open(const ShardIndex& index) {
    RETURN_IF_ERROR(read_config());
    for (const fs::path& shard : index.shards) RETURN_IF_ERROR(read_shard(shard, index));
    RETURN_IF_ERROR(check_complete(index));
    if (index.shards.size() > 1)
      parts_.container = fmt::format("safetensors, {} shards", index.shards.size());
    RETURN_IF_ERROR(rename_tensors());
    parts_.metadata = Metadata(std::move(config_.metadata), (folder_ / "config.json").string());
    parts_.read_vocab = [folder = folder_](const Metadata&) -> Result<VocabSpec> {
      ASSIGN_OR_RETURN(const HfTokenizerFiles files, read_tokenizer_files(folder));
      return vocab_from_tokenizer_files(files, folder.string());
    };
    return CheckpointBuilder::build(std::move(parts_));
  }

 private:
  Result<void> read_config();
  Result<void> read_shard(const fs::path& shard, const ShardIndex& index);
  Result<void> check_complete(const ShardIndex& index) const;
  Result<void> rename_tensors();
  Result<void> check_distinct() const;
  void settle_output_head();

  fs::path folder_;
  HfConfig config_;
  std::vector<std::string> left_out_;
  CheckpointParts parts_;
};

Result<void> SafetensorsOpener::read_config() {
  const fs::path path = folder_ / "config.json";
  auto document = read_json_file(path.string(), kMaximumConfigBytes);
  if (!document && document.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound, folder_.string(),
                "the folder has no config.json, which describes the weights of a safetensors checkpoint");
  }
  if (!document) return std::unexpected(document.error());
  ASSIGN_OR_RETURN(const JsonReader config, as_object(*document, path.string()));
  const std::string name = fs::absolute(folder_).lexically_normal().filename().string();
  ASSIGN_OR_RETURN(config_, translate_config(config, name));
  parts_.warnings = std::move(config_.warnings);
  return {};
}

Result<void> SafetensorsOpener::read_shard(const fs::path& shard, const ShardIndex& index) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(shard));
  ASSIGN_OR_RETURN(SafetensorsContents contents, parse_safetensors(file.bytes(), shard.string()));
  const std::string file_name = shard.filename().string();
  for (Tensor& tensor : contents.tensors) {
    const auto planned = index.shard_of.find(tensor.name);
    if (planned != index.shard_of.end() && planned->second != file_name) {
      return fail(ErrorCode::kCorrupt, shard.string(), "tensor {} is here, the index says {}",
                  show_name(tensor.name), show_name(planned->second));
    }
    parts_.tensors.push_back(std::move(tensor));
  }
  for (std::string& name : contents.left_out) left_out_.push_back(std::move(name));
  for (std::string& warning : contents.warnings) parts_.warnings.push_back(std::move(warning));
  parts_.files.push_back(std::move(file));
  return {};
}

// Every tensor that the index lists is there, unless it was left out with a warning.
Result<void> SafetensorsOpener::check_complete(const ShardIndex& index) const {
  RETURN_IF_ERROR(check_distinct());
  std::set<std::string_view> present;
  for (const Tensor& tensor : parts_.tensors) present.insert(tensor.name);
  present.insert(left_out_.begin(), left_out_.end());
  for (const auto& [name, shard] : index.shard_of) {
    if (present.contains(name)) continue;
    return fail(ErrorCode::kCorrupt, (folder_ / shard).string(),
                "tensor {} is in the index and not in the file", show_name(name));
  }
  return {};
}

Result<void> SafetensorsOpener::check_distinct() const {
  std::set<std::string_view> names;
  for (const Tensor& tensor : parts_.tensors) {
    if (!names.insert(tensor.name).second) {
      return fail(ErrorCode::kCorrupt, folder_.string(), "tensor {} occurs twice", show_name(tensor.name));
    }
  }
  return {};
}

Result<void> SafetensorsOpener::rename_tensors() {
  std::erase_if(parts_.tensors, [](const Tensor& tensor) { return is_derived_buffer(tensor.name); });
  size_t n_unknown = 0;
  std::string example;
  for (Tensor& tensor : parts_.tensors) {
    if (auto renamed = gguf_tensor_name(tensor.name, config_.architecture)) {
      tensor.name = std::move(*renamed);
    } else if (n_unknown++ == 0) {
      example = tensor.name;
    }
  }
  if (n_unknown > 0) {
    parts_.warnings.push_back(fmt::format("{} tensors have names that assay does not know, such as {}",
                                          n_unknown, show_name(example)));
  }
  settle_output_head();
  return check_distinct();
}

// Tied checkpoints hold one matrix under either name, sometimes under both.
void SafetensorsOpener::settle_output_head() {
  const auto find = [&](std::string_view name) {
    return std::find_if(parts_.tensors.begin(), parts_.tensors.end(),
                        [&](const Tensor& t) { return t.name == name; });
  };
  const auto output = find("output.weight");
  const auto embedding = find("token_embd.weight");
  if (output == parts_.tensors.end()) {
    if (!config_.tied_embeddings && embedding != parts_.tensors.end()) {
      parts_.warnings.emplace_back(
          "lm_head.weight is missing though the embeddings are not tied; they are taken as tied");
    }
  } else if (config_.tied_embeddings) {
    if (embedding == parts_.tensors.end()) {
      output->name = "token_embd.weight";
    } else {
      parts_.tensors.erase(output);
    }
  }
}

// The only .safetensors file of a folder without an index.
Result<fs::path> only_safetensors_file(const fs::path& folder) {
  std::vector<fs::path> found;
  bool has_gguf = false;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") found.push_back(entry->path());
    has_gguf = has_gguf || entry->path().extension() == ".gguf";
  }
  if (error) return fail(ErrorCode::kIo, folder.string(), "cannot list the folder: {}", error.message());
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(ErrorCode::kNotFound, folder.string(), "the folder has no .safetensors file{}",
                has_gguf ? "; name its .gguf file instead" : "");
  }
  return fail(ErrorCode::kNotFound, folder.string(), "the folder has {} .safetensors files and no {}",
              found.size(), kIndexName);
}

}  // namespace

Result<Checkpoint> open_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "config.json", ignored)) {
    return fail(ErrorCode::kNotFound, folder.string(),
                "the folder has no config.json: expected config.json, tokenizer.json and *.safetensors, or a "
                ".gguf file");
  }
  ShardIndex index;
  if (fs::exists(folder / kIndexName, ignored)) {
    ASSIGN_OR_RETURN(index, read_index(folder / kIndexName));
  } else {
    ASSIGN_OR_RETURN(const fs::path file, only_safetensors_file(folder));
    index.shards.push_back(file);
  }
  return SafetensorsOpener(folder, folder).open(index);
}

Result<Checkpoint> open_safetensors_file(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  ShardIndex index;
  if (path.extension() == ".json") {
    ASSIGN_OR_RETURN(index, read_index(path));
  } else {
    index.shards.push_back(path);
  }
  return SafetensorsOpener(path, folder).open(index);
}

}  // namespace assay::modelfile_internal
