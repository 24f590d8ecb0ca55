// A checkpoint, whatever its container: a GGUF file, a safetensors file, or a directory with safetensors
// shards and config.json / tokenizer.json. Opening validates everything (sizes, bounds, types, overlaps)
// before any tensor is touched; tensor data stays in the read-only mapping.
//
// Names are canonical: tensors use GGUF names ("blk.0.attn_q.weight"), metadata uses GGUF keys
// ("llama.block_count"); the safetensors reader translates Hugging Face names and config.json.
// One thing cannot be renamed: GGUF files of the llama family hold Q and K rows permuted for rotation of
// adjacent pairs; `rope_halves()` says that the rows are as Hugging Face has them (first half with second
// half).
//
// Thread safety: immutable after open. Failure: kCorrupt, kUnsupported, kNotFound, kIo with path and field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "numeric/block_type.h"
#include "tokenizer/vocab_spec.h"

namespace assay {

struct MetadataArray;
// Integers of every width are widened; arrays hold one kind.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::shared_ptr<const MetadataArray>>;
struct MetadataArray {
  std::variant<std::vector<bool>, std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
               std::vector<std::string>>
      values;
};

struct Tensor {
  std::string name;
  BlockType type = BlockType::kF32;
  std::vector<int64_t> shape;       // outermost first: [n_outputs, n_inputs] for a matrix; at most 4
  std::span<const std::byte> data;  // stored_bytes(type, product of shape) bytes, inside the mapping

  int64_t n_values() const;
};

class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& path);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::filesystem::path& path() const;
  std::string_view container() const;     // "GGUF v3", "safetensors"
  std::string_view architecture() const;  // general.architecture: "llama", "qwen2", ...
  bool rope_halves() const;
  uint64_t file_bytes() const;                    // of all files with tensors
  std::span<const std::string> warnings() const;  // what was skipped or assumed, one sentence each

  std::span<const Tensor> tensors() const;  // in file order
  const Tensor* find(std::string_view name) const;

  std::span<const std::pair<std::string, MetadataValue>> metadata() const;
  const MetadataValue* find_metadata(std::string_view key) const;
  // Typed look-ups: kNotFound when absent, kCorrupt when the type is another or the value does not fit.
  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> text(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;  // a single number counts as one element

  // The vocabulary, copied out. kNotFound when the file carries none.
  Result<VocabSpec> vocab() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  friend struct CheckpointBuilder;
};

}  // namespace assay
