#include "serve/prompt_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "serve/special_text_mask.h"

namespace assay {
namespace {

// Normalising may shorten a text before it is cut into tokens; hardly to a quarter.
constexpr size_t kNormalisingSlack = 4;

}  // namespace

PromptEncoder::PromptEncoder(const ServedModel& model) : model_(model) {
  const Tokenizer& tokenizer = model.engine->tokenizer();
  size_t longest_token = 1;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest_token = std::max(longest_token, tokenizer.token_bytes(id).size());
  }
  hopeless_bytes_ = kNormalisingSlack * longest_token * static_cast<size_t>(model.engine->max_context());
}

ApiResult<std::vector<std::vector<int32_t>>> PromptEncoder::inputs(std::span<const PromptInput> inputs,
                                                                   std::string_view field,
                                                                   EncodeOptions options) const {
  std::vector<std::vector<int32_t>> prompts;
  for (const PromptInput& input : inputs) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(*ids);
      continue;
    }
    auto encoded = text(std::get<std::string>(input), field, options);
    if (!encoded) return std::unexpected(std::move(encoded.error()));
    prompts.push_back(std::move(*encoded));
  }
  return prompts;
}

// Refuses what cannot fit before it keeps the I/O thread busy.
ApiResult<std::vector<int32_t>> PromptEncoder::text(std::string_view text, std::string_view field,
                                                    EncodeOptions options) const {
  if (text.size() > hopeless_bytes_) {
    return std::unexpected(
        ApiError{.status = 400,
                 .message = fmt::format("this model's context is {} tokens; {} bytes of {} "
                                        "cannot fit",
                                        model_.engine->max_context(), text.size(), field),
                 .param = std::string(field),
                 .code = "context_length_exceeded"});
  }
  return model_.engine->tokenizer().encode(text, options);
}

std::optional<ApiError> PromptEncoder::check_lengths(std::span<const std::vector<int32_t>> prompts,
                                                     const GenerationOptions& options,
                                                     std::string_view field) const {
  const int64_t context = model_.engine->max_context();
  for (const std::vector<int32_t>& prompt : prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    if (length == 0) {
      return ApiError{.status = 400,
                      .message = fmt::format("{}: holds no tokens", field),
                      .param = std::string(field),
                      .code = "invalid_value"};
    }
    const int64_t wanted = std::max<int64_t>(1, options.max_tokens);
    if (length + wanted <= context) continue;
    return ApiError{
        .status = 400,
        .message = fmt::format("this model's context is {} tokens; the request needs {} ({} in the {}, {} "
                               "for the answer)",
                               context, length + wanted, length, field, wanted),
        .param = std::string(field),
        .code = "context_length_exceeded"};
  }
  return std::nullopt;
}

ApiResult<std::vector<int32_t>> PromptEncoder::chat(const ChatCompletionRequest& request,
                                                    std::string_view end) const {
  if (!model_.render_chat) {
    return std::unexpected(
        ApiError{.status = 400,
                 .message = fmt::format("the model '{}' cannot chat: {}; use /v1/completions", model_.name,
                                        model_.no_chat_reason),
                 .param = "messages",
                 .code = "no_chat_template"});
  }
  const std::string lost = "messages: too many kinds of private-use characters beside special tokens";
  std::vector<ChatMessage> messages = request.messages;
  boost::json::array tools = request.tools.offered() ? request.tools.listed : boost::json::array();
  SpecialTextMask mask(model_.engine->tokenizer());
  if (!mask.hide(messages, tools)) {
    return std::unexpected(
        ApiError{.status = 400, .message = lost, .param = "messages", .code = "invalid_value"});
  }
  const auto text = model_.render_chat(messages, tools);
  if (!text && text.error().code == ErrorCode::kInvalidArgument) {
    // The template's own verdict, e.g. that roles must alternate.
    return std::unexpected(ApiError{.status = 400,
                                    .message = "messages: " + text.error().what,
                                    .param = "messages",
                                    .code = "refused_by_chat_template"});
  }
  if (!text)
    return std::unexpected(engine_failure({ErrorCode::kInternal, "chat template", text.error().message()}));
  const SpecialTextMask::Revealed prompt = mask.reveal(*text + std::string(end));
  return this->text(prompt.text, "messages", {.parse_special = true, .literal = prompt.literal});
}

}  // namespace assay
