#include "serve/token_request.h"

#include "serve/chat_messages.h"
#include "serve/field_reader.h"
#include "serve/json_body.h"

namespace assay {

ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const ApiLimits& limits) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(std::move(object.error()));
  FieldReader fields(*object);
  TokenizeRequest request;
  request.model = fields.text("model").value_or("");
  const auto prompt = fields.text("prompt");
  const bool conversation = fields.any("messages") != nullptr;
  if (prompt.has_value() == conversation)
    fields.fail(prompt ? "messages" : "prompt", "give either prompt or messages",
                "missing_required_parameter");
  if (conversation) {
    request.messages = read_messages(fields, limits.max_messages);
    request.tools = read_tools(fields);
    fields.refuse("add_generation_prompt", "true", "only true is supported");
    fields.refuse("continue_final_message", "false", "is not supported");
    fields.refuse("add_special_tokens", "false",
                  "the chat template writes the special tokens of a conversation");
  } else {
    request.prompt = prompt.value_or("");
    request.parse_special = fields.boolean("parse_special").value_or(true);
    request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  }
  request.return_token_strs = fields.boolean("return_token_strs").value_or(false);
  fields.finish();
  if (fields.failed()) return std::unexpected(fields.error());
  return request;
}

ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body, const ApiLimits& limits) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(std::move(object.error()));
  FieldReader fields(*object);
  DetokenizeRequest request;
  request.model = fields.text("model").value_or("");
  const boost::json::array* tokens = fields.array("tokens");
  if (tokens == nullptr)
    fields.fail("tokens", "is required: an array of token ids", "missing_required_parameter");
  if (tokens != nullptr) read_token_ids(fields, "tokens", *tokens, limits.n_vocab, request.tokens);
  fields.finish();
  if (fields.failed()) return std::unexpected(fields.error());
  return request;
}

}  // namespace assay
