#include "serve/prompt_fields.h"

#include <fmt/format.h>

#include <utility>

namespace assay {

namespace json = boost::json;

bool read_token_ids(FieldReader& fields, std::string_view name, const json::array& list, int32_t n_vocab,
                    std::vector<int32_t>& ids) {
  ids.reserve(list.size());
  for (const json::value& entry : list) {
    if (!entry.is_int64()) {
      fields.fail_type(name, "token ids", entry);
      return false;
    }
    if (entry.get_int64() < 0 || entry.get_int64() >= n_vocab) {
      fields.fail(name, fmt::format("token id {} is not in the vocabulary (0 to {})", entry.get_int64(),
                                    n_vocab - 1));
      return false;
    }
    ids.push_back(static_cast<int32_t>(entry.get_int64()));
  }
  return true;
}

std::vector<PromptInput> read_prompts(FieldReader& fields, std::string_view name,
                                      const PromptLimits& limits) {
  std::vector<PromptInput> prompts;
  const json::value* prompt = fields.any(name);
  if (prompt == nullptr) {
    fields.fail(name, "is required", "missing_required_parameter");
    return prompts;
  }
  if (const json::string* text = prompt->if_string()) {
    prompts.emplace_back(std::string(*text));
    return prompts;
  }
  const json::array* list = prompt->if_array();
  if (list == nullptr) {
    fields.fail_type(name, "a string, an array of strings, an array of token ids or an array of those",
                     *prompt);
    return prompts;
  }
  if (list->empty()) {
    fields.fail(name, "the array is empty");
    return prompts;
  }
  if (list->front().is_number()) {
    std::vector<int32_t> ids;
    if (read_token_ids(fields, name, *list, limits.n_vocab, ids)) prompts.emplace_back(std::move(ids));
    return prompts;
  }
  if (list->size() > static_cast<size_t>(limits.max_prompts)) {
    fields.fail(name, fmt::format("expected at most {} prompts, found {}", limits.max_prompts, list->size()));
    return prompts;
  }
  for (const json::value& entry : *list) {
    if (entry.kind() != list->front().kind()) {
      fields.fail(name, "the array mixes different kinds of prompts");
      return prompts;
    }
    if (const json::string* text = entry.if_string()) {
      prompts.emplace_back(std::string(*text));
    } else if (const json::array* inner = entry.if_array(); inner != nullptr && !inner->empty()) {
      std::vector<int32_t> ids;
      if (!read_token_ids(fields, name, *inner, limits.n_vocab, ids)) return prompts;
      prompts.emplace_back(std::move(ids));
    } else {
      fields.fail_type(name, "strings or non-empty arrays of token ids", entry);
      return prompts;
    }
  }
  return prompts;
}

}  // namespace assay
