#include "model/model_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/kernel_table.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 2> kArchitectures = {"llama", "qwen2"};
constexpr int64_t kLargestInt = std::numeric_limits<int>::max();

// Reads "<architecture>.<key>", turning absence into an empty optional.
class Reader {
 public:
  explicit Reader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", checkpoint_.architecture(), name);
  }
  std::string where() const { return checkpoint_.path().string(); }

  Result<std::optional<int>> find_integer(std::string_view name, int64_t low,
                                          int64_t high = kLargestInt) const {
    return find_integer_at(key(name), low, high);
  }
  Result<std::optional<int>> find_integer_at(const std::string& full, int64_t low, int64_t high) const {
    const auto value = checkpoint_.integer(full);
    if (!value) return absent_or_error<int>(value.error());
    if (*value < low || *value > high) {
      return fail(ErrorCode::kCorrupt, where(), "{} is {}, expected {}..{}", full, *value, low, high);
    }
    return static_cast<int>(*value);
  }
  Result<int> integer(std::string_view name, int64_t low, int64_t high = kLargestInt) const {
    ASSIGN_OR_RETURN(const auto value, find_integer(name, low, high));
    if (!value) return fail(ErrorCode::kCorrupt, where(), "metadata {} is missing", key(name));
    return *value;
  }
  // A positive, finite number.
  Result<std::optional<double>> find_number(std::string_view name) const {
    const auto value = checkpoint_.number(key(name));
    if (!value) return absent_or_error<double>(value.error());
    if (!std::isfinite(*value) || *value <= 0) {
      return fail(ErrorCode::kCorrupt, where(), "{} is {}, expected a positive number", key(name), *value);
    }
    return *value;
  }
  Result<std::optional<std::string>> find_text(std::string_view full) const {
    auto value = checkpoint_.text(full);
    if (!value) return absent_or_error<std::string>(value.error());
    return std::move(*value);
  }

 private:
  template <class T>
  static Result<std::optional<T>> absent_or_error(const Error& error) {
    if (error.code == ErrorCode::kNotFound) return std::optional<T>();
    return std::unexpected(error);
  }

  const Checkpoint& checkpoint_;
};

// GGUF's attn_factor multiplies YaRN's own magnitude; Hugging Face's attention_factor takes its place.
bool attention_factor_is_absolute(const Checkpoint& checkpoint) {
  return !checkpoint.container().starts_with("GGUF");
}

Result<void> read_sizes(const Reader& reader, ModelConfig& config) {
  constexpr int64_t kLargest = 1 << 24;
  ASSIGN_OR_RETURN(config.n_layers, reader.integer("block_count", 1, 1 << 14));
  ASSIGN_OR_RETURN(config.n_embedding, reader.integer("embedding_length", 1, kLargest));
  ASSIGN_OR_RETURN(config.n_feed_forward, reader.integer("feed_forward_length", 1, kLargest));
  ASSIGN_OR_RETURN(config.context_length, reader.integer("context_length", 1, 1 << 28));
  ASSIGN_OR_RETURN(config.n_heads, reader.integer("attention.head_count", 1, 1 << 14));
  ASSIGN_OR_RETURN(const auto n_kv_heads, reader.find_integer("attention.head_count_kv", 1, 1 << 14));
  config.n_kv_heads = n_kv_heads.value_or(config.n_heads);
  if (config.n_heads % config.n_kv_heads != 0) {
    return fail(ErrorCode::kCorrupt, reader.where(), "{} heads cannot share {} key-value heads evenly",
                config.n_heads, config.n_kv_heads);
  }
  ASSIGN_OR_RETURN(const auto key_length, reader.find_integer("attention.key_length", 1, 1 << 14));
  ASSIGN_OR_RETURN(const auto value_length, reader.find_integer("attention.value_length", 1, 1 << 14));
  if (!key_length && config.n_embedding % config.n_heads != 0) {
    return fail(ErrorCode::kCorrupt, reader.where(), "{} embedding values cannot be split over {} heads",
                config.n_embedding, config.n_heads);
  }
  config.head_dim = key_length.value_or(config.n_embedding / config.n_heads);
  if (config.head_dim > kMaxHeadDim) {
    return fail(ErrorCode::kUnsupported, reader.where(), "heads of {} values; attention handles at most {}",
                config.head_dim, kMaxHeadDim);
  }
  if (value_length.value_or(config.head_dim) != config.head_dim) {
    return fail(ErrorCode::kUnsupported, reader.where(),
                "keys of {} and values of {} per head; assay wants them equal", config.head_dim,
                *value_length);
  }
  ASSIGN_OR_RETURN(const auto epsilon, reader.find_number("attention.layer_norm_rms_epsilon"));
  if (!epsilon) {
    return fail(ErrorCode::kCorrupt, reader.where(), "metadata {} is missing",
                reader.key("attention.layer_norm_rms_epsilon"));
  }
  config.norm_epsilon = static_cast<float>(*epsilon);
  return {};
}

Result<void> refuse_unknown_features(const Reader& reader, const ModelConfig& config) {
  ASSIGN_OR_RETURN(const auto n_experts, reader.find_integer("expert_count", 0));
  if (n_experts.value_or(0) > 0) {
    return fail(ErrorCode::kUnsupported, reader.where(), "mixture of {} experts is not executed yet",
                *n_experts);
  }
  if (config.architecture == "qwen2" && config.sliding_window > 0 &&
      config.sliding_window < config.context_length) {
    return fail(ErrorCode::kUnsupported, reader.where(),
                "qwen2 with a sliding window in some layers is not executed");
  }
  return {};
}

Result<RopeScaling> parse_scaling(const Reader& reader, const std::string& text) {
  constexpr std::array<std::pair<std::string_view, RopeScaling>, 5> kNames = {
      {{"none", RopeScaling::kNone},
       {"linear", RopeScaling::kLinear},
       {"dynamic", RopeScaling::kDynamic},
       {"yarn", RopeScaling::kYarn},
       {"llama3", RopeScaling::kLlama3}}};
  for (const auto& [name, scaling] : kNames) {
    if (text == name) return scaling;
  }
  return fail(ErrorCode::kUnsupported, reader.where(),
              "rope scaling '{}' is not executed; known are none, linear, dynamic, yarn, llama3", text);
}

// The rope_freqs tensor of Llama 3 files: what each pair's frequency is divided by.
Result<void> read_rope_factors(const Checkpoint& checkpoint, ModelConfig& config) {
  const Tensor* tensor = checkpoint.find("rope_freqs.weight");
  if (tensor == nullptr) return {};
  if (tensor->type != BlockType::kF32 || tensor->n_values() != config.rope_dim / 2) {
    return fail(ErrorCode::kCorrupt, checkpoint.path().string(),
                "rope_freqs.weight: expected {} F32 values, found {} {}", config.rope_dim / 2,
                tensor->n_values(), name(tensor->type));
  }
  config.rope_factors.resize(static_cast<size_t>(tensor->n_values()));
  decode(tensor->type, tensor->data, config.rope_factors);
  for (const float factor : config.rope_factors) {
    if (!std::isfinite(factor) || factor <= 0) {
      return fail(ErrorCode::kCorrupt, checkpoint.path().string(),
                  "rope_freqs.weight holds {}, expected positive numbers", factor);
    }
  }
  if (config.rope_scaling != RopeScaling::kNone) {
    return fail(ErrorCode::kUnsupported, checkpoint.path().string(),
                "rope_freqs.weight together with another rope scaling is not executed");
  }
  config.rope_scaling = RopeScaling::kFactors;
  return {};
}

Result<void> read_scaling_numbers(const Checkpoint& checkpoint, const Reader& reader, ModelConfig& config) {
  // Before rope.scaling.* there was rope.scale_linear.
  ASSIGN_OR_RETURN(const auto old_factor, reader.find_number("rope.scale_linear"));
  ASSIGN_OR_RETURN(const auto factor, reader.find_number("rope.scaling.factor"));
  config.rope_factor = factor.value_or(old_factor.value_or(1.0));
  if (old_factor && config.rope_scaling == RopeScaling::kNone) config.rope_scaling = RopeScaling::kLinear;
  const int declared = config.context_length;
  ASSIGN_OR_RETURN(const auto original,
                   reader.find_integer("rope.scaling.original_context_length", 1, 1 << 28));
  config.rope_original_context = original.value_or(declared);
  if (config.rope_scaling == RopeScaling::kDynamic ||
      (config.rope_scaling == RopeScaling::kYarn && original)) {
    const double reach = config.rope_original_context * config.rope_factor;
    config.context_length = std::max(declared, static_cast<int>(std::min(reach, double{1 << 28})));
  }
  ASSIGN_OR_RETURN(const auto low, reader.find_number("rope.scaling.low_freq_factor"));
  ASSIGN_OR_RETURN(const auto high, reader.find_number("rope.scaling.high_freq_factor"));
  config.rope_low_frequency_factor = low.value_or(1);
  config.rope_high_frequency_factor = high.value_or(4);
  if (config.rope_scaling == RopeScaling::kLlama3 &&
      config.rope_low_frequency_factor >= config.rope_high_frequency_factor) {
    return fail(ErrorCode::kCorrupt, reader.where(),
                "rope scaling: low_freq_factor {} is not below high_freq_factor {}",
                config.rope_low_frequency_factor, config.rope_high_frequency_factor);
  }
  ASSIGN_OR_RETURN(const auto fast, reader.find_number("rope.scaling.yarn_beta_fast"));
  ASSIGN_OR_RETURN(const auto slow, reader.find_number("rope.scaling.yarn_beta_slow"));
  config.yarn_beta_fast = fast.value_or(32);
  config.yarn_beta_slow = slow.value_or(1);
  if (config.rope_scaling == RopeScaling::kYarn) {
    const double magnitude = config.rope_factor > 1 ? 0.1 * std::log(config.rope_factor) + 1 : 1;
    ASSIGN_OR_RETURN(const auto attention, reader.find_number("rope.scaling.attn_factor"));
    config.yarn_attention_factor = attention_factor_is_absolute(checkpoint)
                                       ? attention.value_or(magnitude)
                                       : magnitude * attention.value_or(1.0);
  }
  return {};
}

Result<void> read_rope(const Checkpoint& checkpoint, const Reader& reader, ModelConfig& config) {
  // Files of the llama family in GGUF have Q and K permuted for adjacent pairs; all others rotate halves.
  config.rope_style = config.architecture != "llama" || checkpoint.rope_halves() ? RopeStyle::kHalves
                                                                                 : RopeStyle::kAdjacentPairs;
  ASSIGN_OR_RETURN(const auto rope_dim, reader.find_integer("rope.dimension_count", 2, 1 << 14));
  config.rope_dim = rope_dim.value_or(config.head_dim);
  if (config.rope_dim > config.head_dim || config.rope_dim % 2 != 0) {
    return fail(ErrorCode::kCorrupt, reader.where(), "{} of {} values per head cannot be rotated in pairs",
                config.rope_dim, config.head_dim);
  }
  ASSIGN_OR_RETURN(const auto theta, reader.find_number("rope.freq_base"));
  config.rope_theta = theta.value_or(10000);
  ASSIGN_OR_RETURN(const auto scaling, reader.find_text(reader.key("rope.scaling.type")));
  if (scaling) {
    ASSIGN_OR_RETURN(config.rope_scaling, parse_scaling(reader, *scaling));
  }
  RETURN_IF_ERROR(read_scaling_numbers(checkpoint, reader, config));
  return read_rope_factors(checkpoint, config);
}

// The embedding says how many tokens there are; what the metadata says must agree with it.
Result<void> read_vocabulary(const Checkpoint& checkpoint, const Reader& reader, ModelConfig& config) {
  const Tensor* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr)
    return fail(ErrorCode::kCorrupt, reader.where(), "tensor token_embd.weight is missing");
  if (embedding->shape.size() != 2 || embedding->shape[1] != config.n_embedding ||
      embedding->shape[0] > kLargestInt) {
    return fail(ErrorCode::kCorrupt, reader.where(),
                "token_embd.weight: expected [vocabulary, {}], found [{}]", config.n_embedding,
                fmt::join(embedding->shape, ", "));
  }
  config.n_vocab = static_cast<int>(embedding->shape[0]);
  ASSIGN_OR_RETURN(const auto declared, reader.find_integer("vocab_size", 0));
  if (declared && *declared > config.n_vocab) {
    return fail(ErrorCode::kCorrupt, reader.where(), "{} is {}, but token_embd.weight has {} rows",
                reader.key("vocab_size"), *declared, config.n_vocab);
  }
  const MetadataValue* tokens = checkpoint.find_metadata("tokenizer.ggml.tokens");
  const auto* array = tokens == nullptr ? nullptr : std::get_if<std::shared_ptr<const MetadataArray>>(tokens);
  if (array != nullptr && *array != nullptr) {
    const size_t n_tokens = std::visit([](const auto& values) { return values.size(); }, (*array)->values);
    if (n_tokens > static_cast<size_t>(config.n_vocab)) {
      return fail(ErrorCode::kCorrupt, reader.where(),
                  "the vocabulary has {} tokens, but token_embd.weight {} rows", n_tokens, config.n_vocab);
    }
  }
  return {};
}

}  // namespace

Result<ModelConfig> ModelConfig::read(const Checkpoint& checkpoint) {
  const Reader reader(checkpoint);
  ModelConfig config;
  config.architecture = checkpoint.architecture();
  if (std::ranges::count(kArchitectures, config.architecture) == 0) {
    return fail(ErrorCode::kUnsupported, reader.where(),
                "architecture '{}' is not executed; supported are {}", config.architecture,
                fmt::join(kArchitectures, ", "));
  }
  ASSIGN_OR_RETURN(const auto title, reader.find_text("general.name"));
  config.name = title.value_or(checkpoint.path().stem().string());
  RETURN_IF_ERROR(read_sizes(reader, config));
  ASSIGN_OR_RETURN(const auto window, reader.find_integer("attention.sliding_window", 0));
  config.sliding_window = window.value_or(0);
  RETURN_IF_ERROR(refuse_unknown_features(reader, config));
  RETURN_IF_ERROR(read_rope(checkpoint, reader, config));
  RETURN_IF_ERROR(read_vocabulary(checkpoint, reader, config));
  const auto tied = checkpoint.boolean("assay.tied_embeddings");
  config.tied_embeddings = tied.value_or(false) || checkpoint.find("output.weight") == nullptr;
  return config;
}

}  // namespace assay
