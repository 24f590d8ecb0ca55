#include "modelfile/gguf_vocab.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "modelfile/end_of_generation.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

// What files leave out for these pre-tokenizers, and llama.cpp assumes.
struct PreDefaults {
  std::string_view pre;
  bool ignore_merges;
  bool add_bos;
};
constexpr PreDefaults kPreDefaults[] = {
    {"llama3", true, true},       {"llama-v3", true, true},  {"llama-bpe", true, true},
    {"falcon3", true, true},      {"falcon-h1", true, true}, {"pixtral", true, true},
    {"midm-2.0", true, true},     {"lfm2", true, true},      {"tekken", true, true},
    {"jina-v5-nano", true, true}, {"youtu", true, false},    {"minicpm5", true, false},
    {"chameleon", false, true},
};

class GgufVocab {
 public:
  explicit GgufVocab(const Metadata& metadata) : metadata_(metadata) {}

  Result<VocabSpec> read() {
    RETURN_IF_ERROR(read_kind());
    RETURN_IF_ERROR(read_tokens());
    RETURN_IF_ERROR(read_scores());
    RETURN_IF_ERROR(read_token_kinds());
    RETURN_IF_ERROR(read_merges());
    RETURN_IF_ERROR(read_charsmap());
    RETURN_IF_ERROR(read_flags());
    RETURN_IF_ERROR(read_special_ids());
    collect_added();
    return std::move(spec_);
  }

 private:
  Result<void> read_kind();
  Result<void> read_tokens();
  Result<void> read_scores();
  Result<void> read_token_kinds();
  Result<void> read_merges();
  Result<void> read_charsmap();
  Result<void> read_flags();
  Result<void> read_special_ids();
  Result<std::optional<int32_t>> token_id(std::string_view key) const;
  Result<void> check_count(std::string_view key, size_t count) const;
  void collect_added();

  const Metadata& metadata_;
  VocabSpec spec_;
};

Result<void> GgufVocab::read_kind() {
  auto model = metadata_.text("tokenizer.ggml.model");
  if (!model) {
    if (model.error().code != ErrorCode::kNotFound) return std::unexpected(model.error());
    return fail(ErrorCode::kNotFound, metadata_.where(),
                "the file carries no tokenizer (tokenizer.ggml.model is missing)");
  }
  if (*model == "gpt2") {
    spec_.kind = VocabKind::kByteLevelBpe;
    ASSIGN_OR_RETURN(auto pre, if_present(metadata_.text("tokenizer.ggml.pre")));
    spec_.pre_tokenizer = pre && !pre->empty() ? *pre : "default";
    for (const auto& [name, ignore_merges, add_bos] : kPreDefaults) {
      if (name != spec_.pre_tokenizer) continue;
      spec_.ignore_merges = ignore_merges;
      spec_.add_bos = add_bos;
    }
    spec_.add_space_prefix = false;
  } else if (*model == "llama") {
    spec_.kind = VocabKind::kSentencePieceBpe;
    spec_.add_bos = true;
    spec_.bos = 1;
    spec_.eos = 2;
    spec_.unknown = 0;
  } else if (*model == "t5") {
    spec_.kind = VocabKind::kUnigram;
    spec_.add_eos = true;
    spec_.add_space_prefix = false;
    spec_.eos = 1;
    spec_.unknown = 2;
    spec_.padding = 0;
  } else if (*model == "none" || *model == "no_vocab") {
    return fail(ErrorCode::kNotFound, metadata_.where(),
                "the file carries no tokenizer (tokenizer.ggml.model is {})", show_name(*model));
  } else {
    return fail(ErrorCode::kUnsupported, metadata_.where(),
                "expected tokenizer.ggml.model to be 'gpt2', 'llama' or 't5', found {}", show_name(*model));
  }
  return {};
}

Result<void> GgufVocab::read_tokens() {
  ASSIGN_OR_RETURN(const std::vector<std::string>* tokens, required(metadata_.texts(kTokens)));
  if (tokens->empty()) return fail(ErrorCode::kCorrupt, metadata_.where(), "{} is empty", kTokens);
  spec_.tokens = *tokens;
  for (size_t id = 0; id < spec_.tokens.size(); ++id) {
    if (spec_.tokens[id].empty()) spec_.tokens[id] = fmt::format("[EMPTY_{}]", id);
  }
  return {};
}

Result<void> GgufVocab::check_count(std::string_view key, size_t count) const {
  if (count == spec_.tokens.size()) return {};
  return fail(ErrorCode::kCorrupt, metadata_.where(), "expected {} elements in {} as in {}, found {}",
              spec_.tokens.size(), key, kTokens, count);
}

Result<void> GgufVocab::read_scores() {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  ASSIGN_OR_RETURN(const auto scores, if_present(metadata_.numbers(kKey)));
  if (spec_.kind == VocabKind::kByteLevelBpe) return {};
  if (!scores)
    return fail(ErrorCode::kCorrupt, metadata_.where(), "{} is missing, which this tokenizer needs", kKey);
  RETURN_IF_ERROR(check_count(kKey, scores->size()));
  spec_.scores.assign(scores->begin(), scores->end());
  return {};
}

Result<void> GgufVocab::read_token_kinds() {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  // By the file's number; 0 is "undefined".
  static constexpr std::array kKinds = {TokenKind::kNormal,  TokenKind::kNormal,      TokenKind::kUnknown,
                                        TokenKind::kControl, TokenKind::kUserDefined, TokenKind::kUnused,
                                        TokenKind::kByte};
  ASSIGN_OR_RETURN(const auto types, if_present(metadata_.integers(kKey)));
  if (!types) return {};
  RETURN_IF_ERROR(check_count(kKey, types->size()));
  spec_.kinds.reserve(types->size());
  for (const int64_t type : *types) {
    if (type < 0 || type >= static_cast<int64_t>(kKinds.size())) {
      return fail(ErrorCode::kCorrupt, metadata_.where(), "{}: expected 0 to 6, found {} for token {}", kKey,
                  type, spec_.kinds.size());
    }
    spec_.kinds.push_back(kKinds[static_cast<size_t>(type)]);
  }
  return {};
}

Result<void> GgufVocab::read_merges() {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  if (spec_.kind != VocabKind::kByteLevelBpe) return {};  // SentencePiece merges by score
  ASSIGN_OR_RETURN(const std::vector<std::string>* merges, required(metadata_.texts(kKey)));
  spec_.merges = *merges;
  return {};
}

Result<void> GgufVocab::read_charsmap() {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  ASSIGN_OR_RETURN(const auto bytes, if_present(metadata_.integers(kKey)));
  if (!bytes) return {};
  spec_.precompiled_charsmap.reserve(bytes->size());
  for (const int64_t byte : *bytes) {
    if (byte < -128 || byte > 255) {
      return fail(ErrorCode::kCorrupt, metadata_.where(), "{}: expected bytes, found {}", kKey, byte);
    }
    spec_.precompiled_charsmap.push_back(static_cast<uint8_t>(byte));
  }
  return {};
}

Result<void> GgufVocab::read_flags() {
  const auto read = [&](std::string_view key, bool& target) -> Result<void> {
    ASSIGN_OR_RETURN(const auto flag, if_present(metadata_.boolean(key)));
    if (flag) target = *flag;
    return {};
  };
  RETURN_IF_ERROR(read("tokenizer.ggml.add_bos_token", spec_.add_bos));
  RETURN_IF_ERROR(read("tokenizer.ggml.add_eos_token", spec_.add_eos));
  RETURN_IF_ERROR(read("tokenizer.ggml.add_space_prefix", spec_.add_space_prefix));
  RETURN_IF_ERROR(read("tokenizer.ggml.remove_extra_whitespaces", spec_.remove_extra_whitespaces));
  spec_.byte_fallback =
      std::find(spec_.kinds.begin(), spec_.kinds.end(), TokenKind::kByte) != spec_.kinds.end();
  ASSIGN_OR_RETURN(auto chat_template, if_present(metadata_.text("tokenizer.chat_template")));
  if (chat_template) spec_.chat_template = std::move(*chat_template);
  return {};
}

// An id outside the vocabulary is left out: converters write 2^32 - 1 for "none".
Result<std::optional<int32_t>> GgufVocab::token_id(std::string_view key) const {
  ASSIGN_OR_RETURN(const auto id, if_present(metadata_.integer(key)));
  if (!id || *id < 0 || *id >= static_cast<int64_t>(spec_.tokens.size())) return std::optional<int32_t>();
  return std::optional<int32_t>(static_cast<int32_t>(*id));
}

Result<void> GgufVocab::read_special_ids() {
  const auto read = [&](std::string_view name, std::optional<int32_t>& target) -> Result<void> {
    ASSIGN_OR_RETURN(const auto id, token_id(fmt::format("tokenizer.ggml.{}_token_id", name)));
    if (id) target = id;
    if (target && static_cast<size_t>(*target) >= spec_.tokens.size()) target.reset();
    return {};
  };
  RETURN_IF_ERROR(read("bos", spec_.bos));
  RETURN_IF_ERROR(read("eos", spec_.eos));
  RETURN_IF_ERROR(read("unknown", spec_.unknown));
  RETURN_IF_ERROR(read("padding", spec_.padding));
  // Without an id there is nothing to add, whatever the flags say.
  spec_.add_bos = spec_.add_bos && spec_.bos;
  spec_.add_eos = spec_.add_eos && spec_.eos;
  NamedEnds named;
  RETURN_IF_ERROR(read("eot", named.end_of_turn));
  RETURN_IF_ERROR(read("eom", named.end_of_message));
  RETURN_IF_ERROR(read("fim_pad", named.fill_padding));
  RETURN_IF_ERROR(read("fim_rep", named.fill_repository));
  RETURN_IF_ERROR(read("fim_sep", named.fill_separator));
  find_end_of_generation(spec_, named);
  return {};
}

void GgufVocab::collect_added() {
  for (size_t id = 0; id < spec_.kinds.size(); ++id) {
    const TokenKind kind = spec_.kinds[id];
    if (kind != TokenKind::kControl && kind != TokenKind::kUserDefined && kind != TokenKind::kUnknown)
      continue;
    spec_.added.push_back({.id = static_cast<int32_t>(id),
                           .text = spec_.tokens[id],
                           .special = kind != TokenKind::kUserDefined});
  }
}

}  // namespace

Result<VocabSpec> vocab_from_gguf(const Metadata& metadata) {
  return GgufVocab(metadata).read();
}

}  // namespace assay::modelfile_internal
