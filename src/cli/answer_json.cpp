#include "cli/answer_json.h"

#include <boost/json/array.hpp>
#include <string>

namespace assay {
namespace {

namespace json = boost::json;

// Bytes of a token are not always UTF-8; JSON strings must be.
json::value text_of(const Tokenizer& tokenizer, int32_t id) {
  StreamDecoder decoder(tokenizer, false);
  std::string text = decoder.push(id);
  text += decoder.finish();
  return json::value(text);
}

json::array tokens_of(const Answer& answer, const Tokenizer& tokenizer) {
  json::array tokens;
  for (const TokenEvent& event : answer.tokens) {
    json::object token{{"id", event.token}, {"text", text_of(tokenizer, event.token)}};
    if (event.logprob) token["logprob"] = *event.logprob;
    if (!event.top.empty()) {
      json::array top;
      for (const TokenLogprob& other : event.top)
        top.push_back(json::object{
            {"id", other.token}, {"text", text_of(tokenizer, other.token)}, {"logprob", other.logprob}});
      token["top_logprobs"] = std::move(top);
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

json::object precision_of(const Model& model) {
  json::object precision{{"requested", to_string(model.precision())},
                         {"effective", describe_effective_precision(model)},
                         {"weight_bytes", model.weight_bytes()}};
  return precision;
}

}  // namespace

json::object to_json(const Answer& answer, const AnswerContext& context) {
  const Model& model = *context.loaded.model();
  const Usage& usage = answer.completion.usage;
  json::object result;
  result["model"] = context.loaded.path().filename().string();
  result["precision"] = precision_of(model);
  result["backend"] = context.loaded.model()->backend().name();
  result["seed"] = context.request.sampling.seed.value_or(0);
  result["prompt_ids"] = json::array(context.request.prompt.begin(), context.request.prompt.end());
  result["text"] = answer.text;
  result["tokens"] = tokens_of(answer, *context.loaded.tokenizer());
  result["finish_reason"] = std::string(name(answer.completion.reason));
  if (!answer.completion.stop_text.empty()) result["stop_text"] = answer.completion.stop_text;
  result["usage"] = json::object{{"prompt_tokens", usage.prompt_tokens},
                                 {"cached_prompt_tokens", usage.cached_prompt_tokens},
                                 {"completion_tokens", usage.completion_tokens}};
  result["timings"] = json::object{{"load_seconds", context.load_seconds},
                                   {"ttft_seconds", answer.ttft_seconds},
                                   {"total_seconds", answer.total_seconds},
                                   {"prefill_seconds", usage.prefill_seconds},
                                   {"decode_seconds", usage.decode_seconds},
                                   {"prefill_tokens_per_second", answer.prefill_tokens_per_second()},
                                   {"decode_tokens_per_second", answer.decode_tokens_per_second()}};
  return result;
}

}  // namespace assay
