#include "serve/token_routes.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "serve/token_request.h"
#include "serve/utf8_text.h"

namespace assay {
namespace {

namespace json = boost::json;

ApiResult<std::vector<int32_t>> encode(const ServerState& state, const TokenizeRequest& request) {
  if (!request.messages.empty()) return state.prompts.chat({{}, request.messages, request.tools}, "");
  return state.prompts.text(request.prompt, "prompt",
                            {.add_bos = request.add_special_tokens, .parse_special = request.parse_special});
}

ApiResult<std::string> tokenize(const ServerState& state, std::string_view body) {
  const auto request = parse_tokenize_request(body, state.config.limits);
  if (!request) return std::unexpected(request.error());
  if (!request->model.empty() && !state.serves(request->model))
    return std::unexpected(state.unknown_model(request->model));
  const auto ids = encode(state, *request);
  if (!ids) return std::unexpected(ids.error());
  json::object answer{{"count", ids->size()},
                      {"max_model_len", state.model.engine->max_context()},
                      {"tokens", json::array(ids->begin(), ids->end())},
                      {"token_strs", nullptr}};
  if (request->return_token_strs) {
    json::array texts;
    for (const int32_t id : *ids)
      texts.emplace_back(replace_invalid_utf8(state.model.engine->tokenizer().token_bytes(id)));
    answer["token_strs"] = std::move(texts);
  }
  return json::serialize(answer);
}

ApiResult<std::string> detokenize(const ServerState& state, std::string_view body) {
  const auto request = parse_detokenize_request(body, state.config.limits);
  if (!request) return std::unexpected(request.error());
  if (!request->model.empty() && !state.serves(request->model))
    return std::unexpected(state.unknown_model(request->model));
  const std::string text = state.model.engine->tokenizer().decode(request->tokens, false);
  return json::serialize(json::object{{"prompt", replace_invalid_utf8(text)}});
}

json::value token_text(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  if (!id) return nullptr;
  return json::value(json::string(replace_invalid_utf8(tokenizer.token_bytes(*id))));
}

void show_tokenizer(ServerState& state, const HttpRequest&, const ResponderPtr& responder) {
  const Tokenizer& tokenizer = state.model.engine->tokenizer();
  const std::string& chat = state.model.chat_template;
  responder->respond(json_response(
      200, json::serialize(json::object{
               {"bos_token", token_text(tokenizer, tokenizer.bos())},
               {"eos_token", token_text(tokenizer, tokenizer.eos())},
               {"unk_token", token_text(tokenizer, tokenizer.spec().unknown)},
               {"pad_token", token_text(tokenizer, tokenizer.spec().padding)},
               {"vocab_size", tokenizer.vocab_size()},
               {"model_max_length", state.model.engine->max_context()},
               {"chat_template", chat.empty() ? json::value(nullptr) : json::value(json::string(chat))}})));
}

template <ApiResult<std::string> (*Work)(const ServerState&, std::string_view)>
void answer(ServerState& state, const HttpRequest& request, const ResponderPtr& responder) {
  if (const auto refusal = refuse_body(request)) return responder->respond(to_response(*refusal));
  auto body = Work(state, request.body);
  responder->respond(body ? json_response(200, std::move(*body)) : to_response(body.error()));
}

}  // namespace

std::vector<HttpServer::Route> token_routes(ServerState& state) {
  return {make_route(state, "POST", "/tokenize", answer<tokenize>),
          make_route(state, "POST", "/detokenize", answer<detokenize>),
          make_route(state, "GET", "/tokenizer_info", show_tokenizer)};
}

}  // namespace assay
