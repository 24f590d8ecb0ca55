#include "modelfile/hf_tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/file.h"
#include "modelfile/end_of_generation.h"
#include "modelfile/hf_tokenizer_parts.h"
#include "modelfile/json_document.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

namespace json = boost::json;

constexpr uint64_t kMaximumTokenizerBytes = uint64_t{256} << 20;
constexpr uint64_t kMaximumConfigBytes = uint64_t{16} << 20;

Result<json::value> read_if_present(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return json::value();
  return read_json_file(path.string(), kMaximumConfigBytes);
}

class VocabBuilder {
 public:
  VocabBuilder(const HfTokenizerFiles& files, std::string_view where) : files_(files), where_(where) {}

  Result<VocabSpec> build() {
    ASSIGN_OR_RETURN(const JsonReader tokenizer, as_object(files_.tokenizer, where_ + "/tokenizer.json"));
    TextRules rules;
    RETURN_IF_ERROR(read_normalizer(tokenizer, spec_, rules));
    RETURN_IF_ERROR(read_pre_tokenizer(tokenizer, spec_, rules));
    RETURN_IF_ERROR(read_tokenizer_model(tokenizer, spec_, rules));
    RETURN_IF_ERROR(read_added_tokens(tokenizer, spec_));
    for (size_t id = 0; id < spec_.tokens.size(); ++id)
      ids_.emplace(spec_.tokens[id], static_cast<int32_t>(id));
    RETURN_IF_ERROR(read_named_tokens());
    RETURN_IF_ERROR(read_added_ends(tokenizer));
    RETURN_IF_ERROR(read_ends_of_generation());
    RETURN_IF_ERROR(read_chat_template());
    return std::move(spec_);
  }

 private:
  Result<void> read_named_tokens();
  Result<std::optional<int32_t>> named_token(std::string_view name) const;
  Result<std::vector<int32_t>> configured_ids(const json::value& document, std::string_view name) const;
  Result<void> read_added_ends(const JsonReader& tokenizer);
  Result<void> read_template_processing(const JsonReader& processor);
  Result<void> read_ends_of_generation();
  Result<void> read_chat_template();

  const HfTokenizerFiles& files_;
  std::string where_;
  VocabSpec spec_;
  std::unordered_map<std::string_view, int32_t> ids_;  // views into spec_.tokens
};

// A token's text: "name": "<s>" or "name": {"content": "<s>"}.
std::optional<std::string> token_text(const json::value& document, std::string_view name) {
  const auto* object = document.if_object();
  const json::value* value = object == nullptr ? nullptr : object->if_contains(name);
  if (value != nullptr && value->is_object()) value = value->get_object().if_contains("content");
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

// From the tokenizer's configuration, else from the model's.
Result<std::optional<int32_t>> VocabBuilder::named_token(std::string_view name) const {
  for (const json::value* document : {&files_.tokenizer_config, &files_.special_tokens}) {
    const auto text = token_text(*document, fmt::format("{}_token", name));
    if (!text) continue;
    if (const auto found = ids_.find(*text); found != ids_.end()) return found->second;
  }
  // A tokenizer that says "no such token" is believed.
  const auto* configured = files_.tokenizer_config.if_object();
  if (configured != nullptr && configured->contains(fmt::format("{}_token", name))) return std::nullopt;
  ASSIGN_OR_RETURN(const auto ids, configured_ids(files_.config, fmt::format("{}_token_id", name)));
  if (ids.empty()) return std::nullopt;
  return ids.front();
}

// An id or an array of them; those outside the vocabulary are left out.
Result<std::vector<int32_t>> VocabBuilder::configured_ids(const json::value& document,
                                                          std::string_view name) const {
  std::vector<int32_t> ids;
  const auto* object = document.if_object();
  const json::value* value = object == nullptr ? nullptr : object->if_contains(name);
  if (value == nullptr || value->is_null()) return ids;
  const auto add = [&](const json::value& id) {
    if (!id.is_int64()) return false;
    if (id.get_int64() >= 0 && static_cast<uint64_t>(id.get_int64()) < spec_.tokens.size()) {
      ids.push_back(static_cast<int32_t>(id.get_int64()));
    }
    return true;
  };
  if (const auto* array = value->if_array()) {
    if (std::all_of(array->begin(), array->end(), add)) return ids;
  } else if (add(*value)) {
    return ids;
  }
  return fail(ErrorCode::kCorrupt, where_, "{}: expected token ids", name);
}

Result<void> VocabBuilder::read_named_tokens() {
  const auto read = [&](std::string_view name, std::optional<int32_t>& target) -> Result<void> {
    ASSIGN_OR_RETURN(const auto id, named_token(name));
    if (id) target = id;
    return {};
  };
  RETURN_IF_ERROR(read("bos", spec_.bos));
  RETURN_IF_ERROR(read("eos", spec_.eos));
  RETURN_IF_ERROR(read("unk", spec_.unknown));
  RETURN_IF_ERROR(read("pad", spec_.padding));
  return {};
}

// The post-processor's template says what stands around a text; add_bos_token and add_eos_token overrule it.
Result<void> VocabBuilder::read_added_ends(const JsonReader& tokenizer) {
  ASSIGN_OR_RETURN(const auto processor, tokenizer.child("post_processor"));
  if (processor) {
    RETURN_IF_ERROR(read_template_processing(*processor));
  }
  if (files_.tokenizer_config.is_object()) {
    ASSIGN_OR_RETURN(const JsonReader config,
                     as_object(files_.tokenizer_config, where_ + "/tokenizer_config.json"));
    ASSIGN_OR_RETURN(const auto add_bos, config.boolean("add_bos_token"));
    ASSIGN_OR_RETURN(const auto add_eos, config.boolean("add_eos_token"));
    spec_.add_bos = add_bos.value_or(spec_.add_bos);
    spec_.add_eos = add_eos.value_or(spec_.add_eos);
  }
  spec_.add_bos = spec_.add_bos && spec_.bos;
  spec_.add_eos = spec_.add_eos && spec_.eos;
  return {};
}

Result<void> VocabBuilder::read_template_processing(const JsonReader& processor) {
  ASSIGN_OR_RETURN(const auto type, processor.text("type"));
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const json::array* parts, processor.array("processors"));
    if (parts == nullptr) return processor.mismatch("processors", "an array");
    for (const json::value& part : *parts) {
      ASSIGN_OR_RETURN(const JsonReader child, as_object(part, processor.where()));
      RETURN_IF_ERROR(read_template_processing(child));
    }
    return {};
  }
  if (type != "TemplateProcessing") return {};  // ByteLevel changes offsets only
  ASSIGN_OR_RETURN(const json::array* single, processor.array("single"));
  if (single == nullptr) return processor.mismatch("single", "an array");
  bool before_text = true;
  for (const json::value& item : *single) {
    const auto* object = item.if_object();
    if (object == nullptr) return processor.mismatch("single", "an array of objects");
    if (object->contains("Sequence")) before_text = false;
    const json::value* special = object->if_contains("SpecialToken");
    if (special == nullptr) continue;
    const auto text = token_text(*special, "id");
    const auto found = text ? ids_.find(*text) : ids_.end();
    if (found == ids_.end()) return processor.mismatch("single", "special tokens of the vocabulary");
    if (before_text) {
      spec_.add_bos = true;
      if (!spec_.bos) spec_.bos = found->second;
    } else {
      spec_.add_eos = true;
      if (!spec_.eos) spec_.eos = found->second;
    }
  }
  return {};
}

Result<void> VocabBuilder::read_ends_of_generation() {
  find_end_of_generation(spec_, {});
  for (const json::value* document : {&files_.generation_config, &files_.config}) {
    ASSIGN_OR_RETURN(const auto ids, configured_ids(*document, "eos_token_id"));
    spec_.end_of_generation.insert(spec_.end_of_generation.end(), ids.begin(), ids.end());
  }
  std::sort(spec_.end_of_generation.begin(), spec_.end_of_generation.end());
  spec_.end_of_generation.erase(std::unique(spec_.end_of_generation.begin(), spec_.end_of_generation.end()),
                                spec_.end_of_generation.end());
  // Whatever ends a generation is no text, also where tokenizer.json did not call it special.
  for (AddedToken& token : spec_.added) {
    token.special = token.special || spec_.kinds[static_cast<size_t>(token.id)] == TokenKind::kControl;
  }
  return {};
}

// One template, or several with names of which "default" is the one for chats.
Result<void> VocabBuilder::read_chat_template() {
  spec_.chat_template = files_.chat_template;
  const auto* config = files_.tokenizer_config.if_object();
  const json::value* value = config == nullptr ? nullptr : config->if_contains("chat_template");
  if (!spec_.chat_template.empty() || value == nullptr || value->is_null()) return {};
  if (const auto* text = value->if_string()) {
    spec_.chat_template.assign(text->begin(), text->end());
    return {};
  }
  const auto* named = value->if_array();
  if (named == nullptr)
    return fail(ErrorCode::kCorrupt, where_, "chat_template: expected a text or an array");
  for (const json::value& entry : *named) {
    if (token_text(entry, "name") == "default")
      spec_.chat_template = token_text(entry, "template").value_or("");
  }
  return {};
}

}  // namespace

Result<HfTokenizerFiles> read_tokenizer_files(const std::filesystem::path& folder) {
  HfTokenizerFiles files;
  const auto tokenizer = folder / "tokenizer.json";
  std::error_code ignored;
  if (!std::filesystem::exists(tokenizer, ignored)) {
    return fail(ErrorCode::kNotFound, folder.string(), "the folder has no tokenizer.json");
  }
  ASSIGN_OR_RETURN(files.tokenizer, read_json_file(tokenizer.string(), kMaximumTokenizerBytes));
  ASSIGN_OR_RETURN(files.tokenizer_config, read_if_present(folder / "tokenizer_config.json"));
  ASSIGN_OR_RETURN(files.special_tokens, read_if_present(folder / "special_tokens_map.json"));
  ASSIGN_OR_RETURN(files.generation_config, read_if_present(folder / "generation_config.json"));
  ASSIGN_OR_RETURN(files.config, read_if_present(folder / "config.json"));
  if (std::filesystem::exists(folder / "chat_template.jinja", ignored)) {
    ASSIGN_OR_RETURN(files.chat_template, read_file(folder / "chat_template.jinja", kMaximumConfigBytes));
  }
  return files;
}

Result<VocabSpec> vocab_from_tokenizer_files(const HfTokenizerFiles& files, std::string_view where) {
  return VocabBuilder(files, where).build();
}

}  // namespace assay::modelfile_internal
