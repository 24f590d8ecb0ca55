// Any bytes as a chat template: parsing and rendering must end with a text or an error, within the limits.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/chat_template.h"

namespace {

const boost::json::object& conversation() {
  static const boost::json::object context = boost::json::parse(R"({
        "messages": [
          {"role": "system", "content": "Be kind."},
          {"role": "user", "content": [{"type": "text", "text": "Grüße \n"}]},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5, "c": [true, null]}}}]},
          {"role": "tool", "content": "3.5"},
          {"role": "user", "content": "日本 <b>&'\""}
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
        "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "n": 3
      })")
                                                 .as_object();
  return context;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  auto parsed = assay::ChatTemplate::parse(source);
  if (!parsed) {
    if (parsed.error().where.empty()) __builtin_trap();
    return 0;
  }
  auto rendered = parsed->render(conversation(), {1767268800});
  if (!rendered && rendered.error().where.empty()) __builtin_trap();
  return 0;
}
