// What a request asks of the form of its answer: the grammar that it must follow, and how tool calls in it
// are read. Failure: ApiError, status 400: a schema that is wrong, not supported or too complex, with `param`
// naming the field and the message the place in the schema; tools where the model's chat template takes none.
// 503 when the grammars in use fill their memory. Thread safety: as GrammarStore. Cost: compiles the grammar
// unless it is kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/token_grammar.h"
#include "serve/api_error.h"
#include "serve/grammar_constraint.h"
#include "serve/openai_request.h"
#include "serve/tool_format.h"

namespace assay {

// How an answer's tool calls are read.
struct ToolReading {
  ToolFormat format = ToolFormat::kNone;
  std::vector<std::string> names;
  bool opened = false;  // the prompt ends with what opens a call
};

struct AnswerShape {
  std::shared_ptr<grammar::TokenGrammar> grammar;  // that the answer follows, or null
  std::string grammar_trigger;                     // the text behind which it begins; empty: at once
  std::optional<ToolReading> tools;                // where there may be calls
  std::string prompt_end;                          // to be put behind the rendered prompt
};

// Whether the shape may need a grammar: then it is to be made where nobody waits for it.
bool needs_grammar(const CompletionRequest& request);
bool needs_grammar(const ChatCompletionRequest& request);

ApiResult<AnswerShape> shape_of_completion(const CompletionRequest& request, GrammarStore& grammars);
ApiResult<AnswerShape> shape_of_chat(const ChatCompletionRequest& request, ToolFormat format,
                                     GrammarStore& grammars);

}  // namespace assay
