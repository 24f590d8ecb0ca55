#include "modelfile/hf_config.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  std::string_view activation;  // hidden_act or hidden_activation; "" accepts any
  bool tied_by_default;
};
constexpr Family kFamilies[] = {
    {"llama", "llama", "silu", false},
    {"mistral", "llama", "silu", false},
    {"qwen2", "qwen2", "silu", false},
    {"qwen3", "qwen3", "silu", false},
    {"phi3", "phi3", "silu", false},
    {"gemma", "gemma", "gelu_pytorch_tanh", true},
    {"gemma2", "gemma2", "gelu_pytorch_tanh", true},
    {"gemma3_text", "gemma3", "gelu_pytorch_tanh", true},
};

class ConfigTranslator {
 public:
  ConfigTranslator(const JsonReader& config, std::string_view name) : config_(config), name_(name) {}

  Result<HfConfig> translate() {
    RETURN_IF_ERROR(read_architecture());
    RETURN_IF_ERROR(refuse_quantised());
    RETURN_IF_ERROR(check_activation());
    RETURN_IF_ERROR(read_sizes());
    RETURN_IF_ERROR(read_attention());
    RETURN_IF_ERROR(read_rope());
    RETURN_IF_ERROR(read_extras());
    return std::move(out_);
  }

 private:
  Result<void> read_architecture();
  Result<void> refuse_quantised() const;
  Result<void> check_activation() const;
  Result<void> read_sizes();
  Result<void> read_attention();
  Result<void> read_rope();
  Result<void> read_rope_scaling(const JsonReader& scaling);
  Result<void> read_extras();

  // A count: at least 1 and below 2^31. The last name is the one in errors.
  Result<std::optional<int64_t>> count(std::string_view name) const;
  Result<int64_t> require_count(std::string_view name) const;
  Result<std::optional<double>> positive(const JsonReader& reader, std::string_view name) const;
  Result<void> copy_number(const JsonReader& reader, std::string_view name, std::string_view key);

  void put(std::string_view key, MetadataValue value) {
    out_.metadata.emplace_back(fmt::format("{}.{}", out_.architecture, key), std::move(value));
  }
  void put_count(std::string_view key, int64_t value) { put(key, static_cast<uint64_t>(value)); }

  const JsonReader& config_;
  std::string_view name_;
  const Family* family_ = nullptr;
  std::string model_type_;
  int64_t head_dim_ = 0;
  HfConfig out_;
};

Result<std::optional<int64_t>> ConfigTranslator::count(std::string_view name) const {
  ASSIGN_OR_RETURN(const auto value, config_.integer(name));
  if (value && (*value < 1 || *value > INT32_MAX)) {
    return fail(ErrorCode::kCorrupt, config_.where(), "{}: expected 1 to 2^31 - 1, found {}", name, *value);
  }
  return value;
}

Result<int64_t> ConfigTranslator::require_count(std::string_view name) const {
  ASSIGN_OR_RETURN(const auto value, count(name));
  if (!value) return fail(ErrorCode::kCorrupt, config_.where(), "{} is missing", name);
  return *value;
}

Result<std::optional<double>> ConfigTranslator::positive(const JsonReader& reader,
                                                         std::string_view name) const {
  ASSIGN_OR_RETURN(const auto value, reader.number(name));
  if (value && !(std::isfinite(*value) && *value > 0)) {
    return fail(ErrorCode::kCorrupt, reader.where(), "{}: expected a positive number, found {}", name,
                *value);
  }
  return value;
}

Result<void> ConfigTranslator::copy_number(const JsonReader& reader, std::string_view name,
                                           std::string_view key) {
  ASSIGN_OR_RETURN(const auto value, positive(reader, name));
  if (value) put(key, *value);
  return {};
}

Result<void> ConfigTranslator::read_architecture() {
  ASSIGN_OR_RETURN(auto model_type, config_.text("model_type"));
  if (!model_type || model_type->empty()) {
    return fail(ErrorCode::kCorrupt, config_.where(),
                "model_type is missing: this is not the config.json of a model");
  }
  model_type_ = *model_type;
  const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const Family& family) { return family.model_type == model_type_; });
  if (found != std::end(kFamilies)) {
    family_ = found;
    out_.architecture = found->architecture;
  } else {
    out_.architecture = model_type_;
    out_.warnings.push_back(fmt::format("model_type {} is not known to assay", show_name(model_type_)));
  }
  out_.metadata.emplace_back("general.architecture", out_.architecture);
  out_.metadata.emplace_back("general.name", std::string(name_));
  return {};
}

Result<void> ConfigTranslator::refuse_quantised() const {
  ASSIGN_OR_RETURN(const auto quantisation, config_.child("quantization_config"));
  if (!quantisation) return {};
  ASSIGN_OR_RETURN(const auto method, quantisation->text("quant_method"));
  return fail(
      ErrorCode::kUnsupported, config_.where(),
      "the weights are quantised ({}), which assay does not decode; use the unquantised checkpoint or a GGUF",
      show_name(method.value_or("unknown method")));
}

Result<void> ConfigTranslator::check_activation() const {
  if (family_ == nullptr) return {};
  ASSIGN_OR_RETURN(auto activation, config_.text("hidden_activation"));
  if (!activation) {
    ASSIGN_OR_RETURN(activation, config_.text("hidden_act"));
  }
  // The first gemma files say "gelu" and mean the tanh form.
  const bool gemma_gelu = family_->activation == "gelu_pytorch_tanh" && activation == "gelu";
  if (!activation || *activation == family_->activation || gemma_gelu) return {};
  return fail(ErrorCode::kUnsupported, config_.where(), "expected hidden_act '{}' for {}, found {}",
              family_->activation, model_type_, show_name(*activation));
}

Result<void> ConfigTranslator::read_sizes() {
  constexpr std::pair<std::string_view, std::string_view> kCounts[] = {
      {"max_position_embeddings", "context_length"},
      {"hidden_size", "embedding_length"},
      {"num_hidden_layers", "block_count"},
      {"intermediate_size", "feed_forward_length"},
      {"vocab_size", "vocab_size"},
  };
  for (const auto& [name, key] : kCounts) {
    ASSIGN_OR_RETURN(const int64_t value, require_count(name));
    put_count(key, value);
  }
  return {};
}

Result<void> ConfigTranslator::read_attention() {
  ASSIGN_OR_RETURN(const int64_t hidden, require_count("hidden_size"));
  ASSIGN_OR_RETURN(const int64_t heads, require_count("num_attention_heads"));
  ASSIGN_OR_RETURN(const auto kv_heads, count("num_key_value_heads"));
  ASSIGN_OR_RETURN(const auto head_dim, count("head_dim"));
  if (!head_dim && hidden % heads != 0) {
    return fail(ErrorCode::kCorrupt, config_.where(),
                "hidden_size {} is not a multiple of num_attention_heads {}", hidden, heads);
  }
  head_dim_ = head_dim.value_or(hidden / heads);
  put_count("attention.head_count", heads);
  put_count("attention.head_count_kv", kv_heads.value_or(heads));
  put_count("attention.key_length", head_dim_);
  put_count("attention.value_length", head_dim_);
  ASSIGN_OR_RETURN(const auto epsilon, positive(config_, "rms_norm_eps"));
  if (!epsilon) return fail(ErrorCode::kCorrupt, config_.where(), "rms_norm_eps is missing");
  put("attention.layer_norm_rms_epsilon", *epsilon);
  ASSIGN_OR_RETURN(const auto window, count("sliding_window"));
  ASSIGN_OR_RETURN(const auto uses_window, config_.boolean("use_sliding_window"));
  if (window && uses_window.value_or(true)) put_count("attention.sliding_window", *window);
  return {};
}

Result<void> ConfigTranslator::read_rope() {
  // transformers 5 moved theta and scaling into rope_parameters.
  ASSIGN_OR_RETURN(const auto parameters, config_.child("rope_parameters"));
  ASSIGN_OR_RETURN(const auto share, positive(config_, "partial_rotary_factor"));
  const int64_t rotated = std::llround(static_cast<double>(head_dim_) * share.value_or(1.0));
  if (rotated < 2 || rotated > head_dim_ || rotated % 2 != 0) {
    return fail(ErrorCode::kCorrupt, config_.where(), "{} of {} values per head cannot be rotated in pairs",
                rotated, head_dim_);
  }
  put_count("rope.dimension_count", rotated);
  ASSIGN_OR_RETURN(auto theta, positive(config_, "rope_theta"));
  if (!theta && parameters) {
    ASSIGN_OR_RETURN(theta, positive(*parameters, "rope_theta"));
  }
  put("rope.freq_base", theta.value_or(10000.0));
  ASSIGN_OR_RETURN(const auto scaling, config_.child("rope_scaling"));
  if (scaling) return read_rope_scaling(*scaling);
  if (parameters) return read_rope_scaling(*parameters);
  return {};
}

Result<void> ConfigTranslator::read_rope_scaling(const JsonReader& scaling) {
  ASSIGN_OR_RETURN(auto type, scaling.text("rope_type"));
  if (!type) {
    ASSIGN_OR_RETURN(type, scaling.text("type"));
  }
  if (!type || *type == "default") return {};
  if (*type == "su") *type = "longrope";  // its first name
  constexpr std::string_view kTypes[] = {"linear", "dynamic", "yarn", "llama3", "longrope"};
  if (std::find(std::begin(kTypes), std::end(kTypes), *type) == std::end(kTypes)) {
    return fail(ErrorCode::kUnsupported, scaling.where(),
                "expected rope_type linear, dynamic, yarn, llama3 or longrope, found {}", show_name(*type));
  }
  put("rope.scaling.type", *type);
  constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"factor", "rope.scaling.factor"},
      {"attention_factor", "rope.scaling.attn_factor"},
      {"low_freq_factor", "rope.scaling.low_freq_factor"},
      {"high_freq_factor", "rope.scaling.high_freq_factor"},
      {"beta_fast", "rope.scaling.yarn_beta_fast"},
      {"beta_slow", "rope.scaling.yarn_beta_slow"},
  };
  for (const auto& [name, key] : kNumbers) RETURN_IF_ERROR(copy_number(scaling, name, key));
  if (*type != "longrope" && !scaling.find("factor")) {
    return fail(ErrorCode::kCorrupt, scaling.where(), "factor is missing for rope_type {}", *type);
  }
  ASSIGN_OR_RETURN(auto original, scaling.integer("original_max_position_embeddings"));
  if (!original) {
    ASSIGN_OR_RETURN(original, config_.integer("original_max_position_embeddings"));
  }
  if (original && (*original < 1 || *original > INT32_MAX)) {
    return fail(ErrorCode::kCorrupt, scaling.where(), "original_max_position_embeddings: found {}",
                *original);
  }
  if (*type == "llama3" &&
      (!original || !scaling.find("low_freq_factor") || !scaling.find("high_freq_factor"))) {
    return fail(
        ErrorCode::kCorrupt, scaling.where(),
        "rope_type llama3 needs low_freq_factor, high_freq_factor and original_max_position_embeddings");
  }
  if (original) put_count("rope.scaling.original_context_length", *original);
  for (const std::string_view name : {"short_factor", "long_factor"}) {
    ASSIGN_OR_RETURN(const auto* factors, scaling.array(name));
    if (factors == nullptr) continue;
    std::vector<double> values;
    for (const auto& factor : *factors) {
      if (!factor.is_number()) return scaling.mismatch(name, "an array of numbers");
      values.push_back(factor.to_number<double>());
    }
    put(fmt::format("rope.scaling.{}", name),
        std::make_shared<const MetadataArray>(MetadataArray{std::move(values)}));
  }
  return {};
}

Result<void> ConfigTranslator::read_extras() {
  RETURN_IF_ERROR(copy_number(config_, "attn_logit_softcapping", "attn_logit_softcapping"));
  RETURN_IF_ERROR(copy_number(config_, "final_logit_softcapping", "final_logit_softcapping"));
  ASSIGN_OR_RETURN(const auto query_scalar, positive(config_, "query_pre_attn_scalar"));
  if (query_scalar) put("attention.scale", 1.0 / std::sqrt(*query_scalar));
  if (out_.architecture.starts_with("gemma")) {
    out_.warnings.emplace_back("gemma norm weights are stored less one, as Hugging Face has them");
  }
  ASSIGN_OR_RETURN(const auto tied, config_.boolean("tie_word_embeddings"));
  out_.tied_embeddings = tied.value_or(family_ != nullptr && family_->tied_by_default);
  out_.metadata.emplace_back("assay.tied_embeddings", out_.tied_embeddings);
  ASSIGN_OR_RETURN(auto dtype, config_.text("torch_dtype"));
  if (!dtype) {
    ASSIGN_OR_RETURN(dtype, config_.text("dtype"));
  }
  if (dtype) out_.metadata.emplace_back("assay.torch_dtype", *dtype);
  return {};
}

}  // namespace

Result<HfConfig> translate_config(const JsonReader& config, std::string_view name) {
  return ConfigTranslator(config, name).translate();
}

}  // namespace assay::modelfile_internal
