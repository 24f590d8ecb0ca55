#include "serve/answer_shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

ApiError schema_failure(const Error& error, std::string_view param) {
  if (error.code == ErrorCode::kUnavailable) {
    return {.status = 503,
            .message = error.message(),
            .type = "server_error",
            .code = "grammars_full",
            .retry_after_seconds = 1};
  }
  const std::string_view code = error.code == ErrorCode::kUnsupported         ? "unsupported_schema"
                                : error.code == ErrorCode::kResourceExhausted ? "schema_too_complex"
                                                                              : "invalid_schema";
  return {.status = 400,
          .message = fmt::format("{}: {}", param, error.message()),
          .param = std::string(param),
          .code = std::string(code)};
}

ApiResult<AnswerShape> shape_of_format(const ResponseFormat& format, GrammarStore& grammars) {
  AnswerShape shape;
  if (format.kind == ResponseFormat::Kind::kText) return shape;
  auto grammar = grammars.get(grammar_key(format), [&] { return compile_response_format(format); });
  if (!grammar) {
    const bool schema = format.kind == ResponseFormat::Kind::kJsonSchema;
    return std::unexpected(
        schema_failure(grammar.error(), schema ? "response_format.json_schema.schema" : "response_format"));
  }
  shape.grammar = std::move(*grammar);
  return shape;
}

std::optional<ApiError> refuse_tools(const ChatCompletionRequest& request, ToolFormat format) {
  if (format != ToolFormat::kNone) return std::nullopt;
  const auto refusal = [](std::string param, std::string_view hint) {
    return ApiError{
        .status = 400,
        .message = fmt::format("{}: the chat template of this model does not take tools, or writes calls in "
                               "a way that is not supported{}",
                               param, hint),
        .param = param,
        .code = "tools_not_supported"};
  };
  if (request.tools.offered()) return refusal("tools", "; set tool_choice to \"none\" to go on without");
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const ChatMessage& message = request.messages[i];
    if (message.role == "tool" || !message.tool_calls.empty())
      return refusal(fmt::format("messages[{}]", i), "");
  }
  return std::nullopt;
}

}  // namespace

bool needs_grammar(const CompletionRequest& request) {
  return request.options.response_format.kind != ResponseFormat::Kind::kText;
}

bool needs_grammar(const ChatCompletionRequest& request) {
  const ToolRequest& tools = request.tools;
  if (!tools.offered()) return request.options.response_format.kind != ResponseFormat::Kind::kText;
  return tools.forced() || std::ranges::any_of(tools.functions, &ToolFunction::strict);
}

ApiResult<AnswerShape> shape_of_completion(const CompletionRequest& request, GrammarStore& grammars) {
  return shape_of_format(request.options.response_format, grammars);
}

ApiResult<AnswerShape> shape_of_chat(const ChatCompletionRequest& request, ToolFormat format,
                                     GrammarStore& grammars) {
  if (auto refusal = refuse_tools(request, format)) return std::unexpected(std::move(*refusal));
  const ToolRequest& tools = request.tools;
  if (!tools.offered()) return shape_of_format(request.options.response_format, grammars);
  AnswerShape shape;
  shape.tools.emplace(ToolReading{.format = format, .opened = tools.forced()});
  for (const ToolFunction& function : tools.functions) shape.tools->names.push_back(function.name);
  const bool any_strict = std::ranges::any_of(tools.functions, &ToolFunction::strict);
  if (!tools.forced() && !any_strict) return shape;
  auto grammar =
      grammars.get(tool_grammar_key(format, tools), [&] { return compile_tool_calls(format, tools); });
  if (!grammar) return std::unexpected(schema_failure(grammar.error(), "tools"));
  shape.grammar = std::move(*grammar);
  (tools.forced() ? shape.prompt_end : shape.grammar_trigger) = call_opening(format);
  return shape;
}

}  // namespace assay
