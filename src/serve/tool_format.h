// How a model writes tool calls, which its chat template tells: what opens a call, how it is spelled, how it
// ends.
//   hermes   <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>   Hermes 2 Pro and 3, Qwen 2.5 and
//   3 llama3   {"name": ..., "parameters": {...}}                             Llama 3.1 and later, one call
//   an answer mistral  [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]           Mistral 7B v0.3, Nemo,
//   Small
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/random.h"
#include "grammar/automaton.h"
#include "serve/tool_request.h"

namespace assay {

enum class ToolFormat { kNone, kHermes, kLlama3, kMistral, kCount };

std::string_view name(ToolFormat format);

// By the marks in the template's source; kNone: it does not take tools, or writes calls in another way.
ToolFormat detect_tool_format(std::string_view template_source);

// The text that opens calls: where a call is required it is put at the end of the prompt. Empty: nothing
// does.
std::string_view call_opening(ToolFormat format);
// Whether the opening is a special token, which decoding would leave out.
bool opening_is_special(ToolFormat format);

// What follows the opening to the end of the answer; where nothing opens calls and none is forced, other text
// that does not begin with a brace too. Functions that are not strict take any object as arguments unless the
// call is forced. Failure: that of the schema, with the function's place in front.
Result<grammar::Automaton> compile_tool_calls(ToolFormat format, const ToolRequest& tools);
std::string tool_grammar_key(ToolFormat format, const ToolRequest& tools);

// An id as OpenAI's ("call_" and 24 characters) or as Mistral's templates want it (9 characters).
std::string make_call_id(ToolFormat format, Random& random);

}  // namespace assay
