// Small checkpoints with every feature, made in memory: the generator and the shapes are those of
// record_reference.py, bit for bit.
#pragma once

#include <unistd.h>

#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model_runner.h"
#include "modelfile/gguf_writer.h"

namespace assay::test {

// splitmix64 started at FNV-1a(name) ^ seed; the top 24 bits, as a value in [-1, 1).
inline std::vector<double> generate(uint64_t seed, std::string_view name, int64_t n) {
  uint64_t state = 0xCBF29CE484222325;
  for (const char byte : name) state = (state ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  state ^= seed;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    values.push_back((static_cast<double>(z >> 40) - 8388608.0) / 8388608.0);
  }
  return values;
}

class SyntheticModel {
 public:
  // `config` as recorded by record_reference.py.
  explicit SyntheticModel(const boost::json::object& config) : config_(config) {
    add_metadata();
    add_tensors();
  }

  void set(std::string_view key, MetadataValue value) {
    for (auto& [name, old] : metadata_) {
      if (name == key) {
        old = std::move(value);
        return;
      }
    }
    metadata_.emplace_back(key, std::move(value));
  }
  void erase_metadata(std::string_view key) {
    std::erase_if(metadata_, [&](const auto& entry) { return entry.first == key; });
  }
  void erase_tensor(const std::string& name) { tensors_.erase(name); }
  void set_tensor(const std::string& name, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    tensors_[name] = {std::move(shape), std::vector<float>(static_cast<size_t>(n), 0.5F)};
  }
  std::vector<float>& values(const std::string& name) { return tensors_.at(name).values; }
  std::string key(std::string_view name) const { return text("architecture") + "." + std::string(name); }

  // Written under a name of its own; removed with this object, or by the next write().
  const std::filesystem::path& write() {
    const std::string name =
        "assay_model_test_" + std::to_string(::getpid()) + "_" + std::to_string(counter_++) + ".gguf";
    path_ = {new std::filesystem::path(std::filesystem::temp_directory_path() / name), [](auto* path) {
               std::error_code ignored;
               std::filesystem::remove(*path, ignored);
               delete path;
             }};
    GgufDocument document{.metadata = metadata_};
    for (const auto& [tensor_name, tensor] : tensors_) {
      document.tensors.push_back({.name = tensor_name,
                                  .type = BlockType::kF32,
                                  .shape = tensor.shape,
                                  .data = std::as_bytes(std::span(tensor.values))});
    }
    if (const auto written = write_gguf(*path_, document); !written)
      ADD_FAILURE() << written.error().message();
    return *path_;
  }

 private:
  struct Entry {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  int64_t integer(const char* key) const { return config_.at(key).as_int64(); }
  double number(const char* key) const { return config_.at(key).to_number<double>(); }
  std::string text(const char* key) const { return std::string(config_.at(key).as_string()); }
  bool has_bias(std::string_view name) const {
    for (const auto& entry : config_.at("biases").as_array()) {
      if (entry.as_string() == name) return true;
    }
    return false;
  }

  void add_metadata() {
    set("general.architecture", text("architecture"));
    const std::pair<const char*, const char*> integers[] = {
        {"block_count", "n_layers"},
        {"embedding_length", "n_embedding"},
        {"feed_forward_length", "n_feed_forward"},
        {"context_length", "context_length"},
        {"attention.head_count", "n_heads"},
        {"attention.head_count_kv", "n_kv_heads"},
        {"attention.key_length", "head_dim"},
        {"attention.value_length", "head_dim"},
        {"rope.dimension_count", "rope_dim"},
        {"attention.sliding_window", "window"},
        {"rope.scaling.original_context_length", "original_context"}};
    for (const auto& [name, field] : integers) {
      if (config_.contains(field)) set(key(name), integer(field));
    }
    const std::pair<const char*, const char*> numbers[] = {
        {"attention.layer_norm_rms_epsilon", "epsilon"},
        {"rope.freq_base", "rope_theta"},
        {"rope.scaling.factor", "factor"},
        {"rope.scaling.low_freq_factor", "low_freq_factor"},
        {"rope.scaling.high_freq_factor", "high_freq_factor"},
        {"rope.scaling.yarn_beta_fast", "beta_fast"},
        {"rope.scaling.yarn_beta_slow", "beta_slow"},
        {"rope.scaling.attn_factor", "attn_factor"}};
    for (const auto& [name, field] : numbers) {
      if (config_.contains(field)) set(key(name), number(field));
    }
    if (text("scaling") != "factors") set(key("rope.scaling.type"), text("scaling"));
  }

  void add(const std::string& name, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    Entry entry{std::move(shape), {}};
    for (double u : generate(static_cast<uint64_t>(integer("seed")), name, n)) {
      if (name.find("norm") != std::string::npos) {
        u = 1 + u / 4;
      } else if (name.find("rope_freqs") != std::string::npos) {
        u = 2 + u;
      } else if (name.ends_with(".weight") && name.find("token_embd") == std::string::npos) {
        u = u / 2;
      }
      entry.values.push_back(static_cast<float>(u));
    }
    tensors_[name] = std::move(entry);
  }

  void add_tensors() {
    const int64_t e = integer("n_embedding"), f = integer("n_feed_forward"), v = integer("n_vocab");
    const int64_t q = integer("n_heads") * integer("head_dim"),
                  k = integer("n_kv_heads") * integer("head_dim");
    add("token_embd.weight", {v, e});
    add("output_norm.weight", {e});
    if (!config_.at("tied").as_bool()) add("output.weight", {v, e});
    if (text("scaling") == "factors") add("rope_freqs.weight", {integer("rope_dim") / 2});
    for (int64_t layer = 0; layer < integer("n_layers"); ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      const std::tuple<const char*, int64_t, int64_t> matrices[] = {
          {"attn_q", q, e},   {"attn_k", k, e}, {"attn_v", k, e},  {"attn_output", e, q},
          {"ffn_gate", f, e}, {"ffn_up", f, e}, {"ffn_down", e, f}};
      for (const auto& [name, rows, cols] : matrices) {
        add(block + name + ".weight", {rows, cols});
        if (has_bias(name)) add(block + name + ".bias", {rows});
      }
      add(block + "attn_norm.weight", {e});
      add(block + "ffn_norm.weight", {e});
    }
  }

  static inline int counter_ = 0;
  boost::json::object config_;
  std::vector<std::pair<std::string, MetadataValue>> metadata_;
  std::map<std::string, Entry> tensors_;
  std::shared_ptr<const std::filesystem::path> path_;
};

}  // namespace assay::test
