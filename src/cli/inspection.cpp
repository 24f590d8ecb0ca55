#include "cli/inspection.h"

#include <algorithm>
#include <cmath>

#include "model/model_config.h"
#include "numeric/integer_groups.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace assay {
namespace {

// How `--weights file` executes a tensor; the group is read from a conversion of the tensor's first block.
std::string executed_as(const Tensor& tensor) {
  if (tensor.shape.size() < 2) return "f32";
  if (has_integer_form(tensor.type)) {
    const BlockLayout block = layout(tensor.type);
    const auto groups =
        to_integer_groups(tensor.type, tensor.data.first(static_cast<size_t>(block.bytes)), 1, block.values);
    if (groups) return fmt::format("{}, groups of {}, lossless", name(groups->format), groups->group);
  }
  switch (tensor.type) {
    case BlockType::kF16:
      return "f16";
    case BlockType::kBF16:
      return "bf16";
    case BlockType::kFp8E4M3:
      return "fp8_e4m3";
    case BlockType::kFp8E5M2:
      return "fp8_e5m2";
    default:
      return "f32";
  }
}

std::vector<FormatShare> shares_of(const Checkpoint& checkpoint) {
  std::map<std::pair<std::string, std::string>, FormatShare> shares;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const std::string stored(name(tensor.type));
    const std::string executed = executed_as(tensor);
    FormatShare& share = shares[{stored, executed}];
    share.stored = stored;
    share.executed = executed;
    share.n_tensors += 1;
    share.n_values += tensor.n_values();
    share.bytes += tensor.data.size();
  }
  std::vector<FormatShare> sorted;
  for (auto& [key, share] : shares) sorted.push_back(std::move(share));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string show(const MetadataValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* natural = std::get_if<uint64_t>(&value)) return fmt::format("{}", *natural);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.7g}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "one value per layer";
}

void read_hyperparameters(const Checkpoint& checkpoint, Inspection& result) {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"context length", "context_length"},
      {"embedding length", "embedding_length"},
      {"layers", "block_count"},
      {"feed-forward length", "feed_forward_length"},
      {"heads", "attention.head_count"},
      {"KV heads", "attention.head_count_kv"},
      {"head dimension", "attention.key_length"},
      {"norm epsilon", "attention.layer_norm_rms_epsilon"},
      {"sliding window", "attention.sliding_window"},
      {"rope theta", "rope.freq_base"},
      {"rope dimensions", "rope.dimension_count"},
      {"rope scaling", "rope.scaling.type"},
      {"rope scaling factor", "rope.scaling.factor"},
      {"experts", "expert_count"},
      {"vocabulary", "vocab_size"},
  };
  const std::string prefix = std::string(checkpoint.architecture()) + ".";
  for (const auto& [label, key] : kKeys) {
    const MetadataValue* value = checkpoint.find_metadata(prefix + std::string(key));
    if (value != nullptr) result.hyperparameters.emplace_back(label, show(*value));
  }
  // Keys and values of one token in bf16, where the metadata says enough.
  const auto integer = [&](std::string_view key) {
    return checkpoint.integer(prefix + std::string(key)).value_or(0);
  };
  const int64_t heads = integer("attention.head_count");
  const int64_t kv_heads = checkpoint.find_metadata(prefix + "attention.head_count_kv") != nullptr
                               ? integer("attention.head_count_kv")
                               : heads;
  int64_t head_dim = integer("attention.key_length");
  if (head_dim == 0 && heads > 0) head_dim = integer("embedding_length") / heads;
  const bool derived = head_dim > 0 && checkpoint.find_metadata(prefix + "attention.key_length") == nullptr;
  if (derived) result.hyperparameters.emplace_back("head dimension", fmt::format("{}", head_dim));
  const double kv_bytes = 2.0 * static_cast<double>(integer("block_count")) * static_cast<double>(kv_heads) *
                          static_cast<double>(head_dim) * 2.0;
  if (kv_bytes > 0)
    result.hyperparameters.emplace_back("KV cache per token", fmt::format("{:.0f} B in bf16", kv_bytes));
}

std::string_view kind_name(const VocabSpec& spec) {
  switch (spec.kind) {
    case VocabKind::kByteLevelBpe:
      return "byte-level BPE";
    case VocabKind::kSentencePieceBpe:
      return "SentencePiece BPE";
    case VocabKind::kUnigram:
      return "SentencePiece unigram";
    case VocabKind::kCount:
      break;
  }
  return "unknown";
}

TokenizerFacts facts_of(const VocabSpec& spec) {
  TokenizerFacts facts{.kind = std::string(kind_name(spec)),
                       .pre_tokenizer = spec.pre_tokenizer,
                       .n_tokens = spec.tokens.size(),
                       .n_merges = spec.merges.size(),
                       .n_added = spec.added.size(),
                       .add_bos = spec.add_bos,
                       .ends = spec.end_of_generation};
  if (facts.pre_tokenizer.empty() && !spec.split_patterns.empty()) {
    facts.pre_tokenizer = fmt::format("{} patterns of tokenizer.json", spec.split_patterns.size());
  }
  const std::pair<const char*, std::optional<int32_t>> named[] = {
      {"bos", spec.bos}, {"eos", spec.eos}, {"unknown", spec.unknown}, {"padding", spec.padding}};
  for (const auto& [label, id] : named) {
    if (id) facts.special.emplace_back(label, *id);
  }
  const auto spell = [&](int32_t id) { facts.spelling[id] = spec.tokens.at(static_cast<size_t>(id)); };
  for (const auto& [label, id] : facts.special) spell(id);
  for (const int32_t id : facts.ends) spell(id);
  return facts;
}

void read_tokenizer(const Checkpoint& checkpoint, Inspection& result) {
  auto spec = checkpoint.vocab();
  if (!spec) {
    const bool none = spec.error().code == ErrorCode::kNotFound;
    result.warnings.push_back(none ? "no tokenizer: " + spec.error().what
                                   : "the tokenizer is unusable: " + spec.error().message());
    return;
  }
  result.tokenizer = facts_of(*spec);
  result.chat_template = spec->chat_template;
  if (spec->chat_template.empty()) result.warnings.emplace_back("no chat template: only plain completions");
  if (const auto parsed = ChatTemplate::parse(spec->chat_template); !parsed) {
    result.warnings.push_back("the chat template is unusable: " + parsed.error().message());
  }
  const int64_t n_tokens = static_cast<int64_t>(spec->tokens.size());
  const Tensor* embedding = checkpoint.find("token_embd.weight");
  if (embedding != nullptr && embedding->shape.size() == 2 && embedding->shape[0] != n_tokens) {
    const int64_t rows = embedding->shape[0];
    result.warnings.push_back(fmt::format("the vocabulary has {} tokens, the embedding {} rows{}", n_tokens,
                                          rows,
                                          rows > n_tokens ? " (padded)" : ": some tokens cannot be used"));
  }
  if (const auto tokenizer = Tokenizer::create(std::move(*spec)); !tokenizer) {
    result.warnings.push_back("the tokenizer is unusable: " + tokenizer.error().message());
  }
}

struct ValueCount {
  int64_t n_nan = 0, n_infinite = 0, first = -1;
};

ValueCount count_broken(const Tensor& tensor) {
  ValueCount count;
  const BlockLayout block = layout(tensor.type);
  // Whole blocks, a quarter of a million values at a time.
  const int64_t step = std::max<int64_t>(1, (int64_t{1} << 18) / block.values) * block.values;
  std::vector<float> values;
  for (int64_t at = 0; at < tensor.n_values(); at += step) {
    const int64_t n = std::min(step, tensor.n_values() - at);
    values.resize(static_cast<size_t>(n));
    decode(tensor.type,
           tensor.data.subspan(static_cast<size_t>(at / block.values * block.bytes),
                               static_cast<size_t>(n / block.values * block.bytes)),
           values);
    for (int64_t i = 0; i < n; ++i) {
      const float value = values[static_cast<size_t>(i)];
      if (std::isfinite(value)) continue;
      if (count.first < 0) count.first = at + i;
      (std::isnan(value) ? count.n_nan : count.n_infinite) += 1;
    }
  }
  return count;
}

}  // namespace

Result<Inspection> inspect(const Checkpoint& checkpoint, bool check_values) {
  Inspection result{.path = checkpoint.path().string(),
                    .container = std::string(checkpoint.container()),
                    .architecture = std::string(checkpoint.architecture()),
                    .name = checkpoint.text("general.name").value_or(""),
                    .file_bytes = checkpoint.file_bytes()};
  for (const Tensor& tensor : checkpoint.tensors()) result.n_parameters += tensor.n_values();
  result.n_tensors = static_cast<int64_t>(checkpoint.tensors().size());
  result.formats = shares_of(checkpoint);
  read_hyperparameters(checkpoint, result);
  for (const std::string& warning : checkpoint.warnings()) result.warnings.push_back(warning);
  if (checkpoint.tensors().empty()) {
    result.warnings.emplace_back("no tensors: this file holds a vocabulary only");
  } else if (const auto config = ModelConfig::read(checkpoint); !config) {
    result.warnings.push_back("assay cannot run it: " + config.error().what);
  }
  read_tokenizer(checkpoint, result);
  if (!check_values) return result;
  result.values_checked = true;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const ValueCount count = count_broken(tensor);
    if (count.first < 0) continue;
    result.broken_tensors.push_back(fmt::format("{}: {} NaN and {} infinite values, the first at index {}",
                                                tensor.name, count.n_nan, count.n_infinite, count.first));
  }
  return result;
}

}  // namespace assay
