#include "serve/tool_format.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/serialize.hpp>

#include "grammar/json_schema.h"

namespace assay {
namespace {

using grammar::AutomatonBuilder;
using grammar::JsonRules;
using grammar::RuleId;
using grammar::StateId;

constexpr uint32_t kMostCalls = 16;  // in one answer

struct Spelling {
  std::string_view name, opening, before_call, arguments_key, after_call, separator, end;
  bool several = true;  // calls in one answer
};
constexpr std::array<Spelling, static_cast<size_t>(ToolFormat::kCount)> kSpellings = {
    Spelling{"none", "", "", "", "", "", "", false},
    Spelling{"hermes", "<tool_call>", "\n", "arguments", "\n</tool_call>", "\n<tool_call>", "", true},
    Spelling{"llama3", "", "", "parameters", "", "", "", false},
    Spelling{"mistral", "[TOOL_CALLS]", "", "arguments", "", ", ", "]", true},
};

const Spelling& spelling(ToolFormat format) {
  return kSpellings.at(static_cast<size_t>(format));
}

RuleId rule_at(AutomatonBuilder& builder, StateId start) {
  const RuleId rule = builder.add_rule();
  builder.set_start(rule, start);
  return rule;
}

// One call of any of the functions that may be called.
Result<RuleId> add_call(AutomatonBuilder& builder, JsonRules& rules, const Spelling& how,
                        const ToolRequest& tools) {
  const StateId start = builder.add_state(), end = builder.add_state();
  const StateId begin = builder.add_text(start, how.before_call);
  for (size_t i = 0; i < tools.functions.size(); ++i) {
    if (tools.choice == ToolRequest::Choice::kNamed && tools.named != i) continue;
    const ToolFunction& function = tools.functions[i];
    const bool bound = (function.strict || tools.forced()) && !function.parameters.is_null();
    RuleId arguments = rules.object(0);
    if (bound) {
      const auto compiled = add_json_schema(builder, rules, function.parameters);
      if (!compiled)
        return std::unexpected(compiled.error().within(fmt::format("tools[{}].function.parameters", i)));
      arguments = *compiled;
    }
    const StateId head =
        builder.add_text(begin, fmt::format(R"({{"name": "{}", "{}": )", function.name, how.arguments_key));
    const StateId tail = builder.add_state();
    builder.add_call(head, arguments, tail);
    builder.add_jump(builder.add_text(builder.add_text(tail, "}"), how.after_call), end);
  }
  builder.set_final(end);
  return rule_at(builder, start);
}

}  // namespace

std::string_view name(ToolFormat format) {
  return spelling(format).name;
}

ToolFormat detect_tool_format(std::string_view source) {
  const auto has = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  if (!has("tools")) return ToolFormat::kNone;
  // GLM and Qwen Coder put the arguments into tags of their own.
  if (has("<tool_call>") && !has("<arg_key>") && !has("<function=")) return ToolFormat::kHermes;
  // With [ARGS] or a call id: later Mistral templates, which write calls in another way.
  if (has("[TOOL_CALLS]") && !has("[ARGS]") && !has("[CALL_ID]")) return ToolFormat::kMistral;
  if (has("<|start_header_id|>") && has("\"parameters\": ")) return ToolFormat::kLlama3;
  return ToolFormat::kNone;
}

std::string_view call_opening(ToolFormat format) {
  return spelling(format).opening;
}

bool opening_is_special(ToolFormat format) {
  return format == ToolFormat::kMistral;
}

Result<grammar::Automaton> compile_tool_calls(ToolFormat format, const ToolRequest& tools) {
  const Spelling& how = spelling(format);
  AutomatonBuilder builder;
  JsonRules rules(builder);
  ASSIGN_OR_RETURN(const RuleId call, add_call(builder, rules, how, tools));
  const StateId start = builder.add_state(), after = builder.add_state();
  const StateId first = format == ToolFormat::kMistral ? builder.add_text(start, "[") : start;
  builder.add_call(first, call, after);
  StateId last = after;
  if (how.several && tools.parallel && tools.choice != ToolRequest::Choice::kNamed) {
    const StateId next = builder.add_state(), next_end = builder.add_state();
    builder.add_call(builder.add_text(next, how.separator), call, next_end);
    builder.set_final(next_end);
    last = builder.add_state();
    builder.add_call(after, builder.add_repeat(rule_at(builder, next), 0, kMostCalls - 1), last);
  }
  builder.set_final(builder.add_text(last, how.end));
  if (how.opening.empty() && !tools.forced()) {
    const StateId other = builder.add_state();
    for (const StateId from : {start, other}) {
      builder.add_edge(from, 0x00, '{' - 1, other);
      builder.add_edge(from, '{' + 1, 0xFF, other);
      builder.set_final(from);
    }
    builder.add_edge(other, '{', '{', other);
  }
  return builder.build(rule_at(builder, start));
}

std::string tool_grammar_key(ToolFormat format, const ToolRequest& tools) {
  std::string key = fmt::format("tools {} {} {} {}", name(format), static_cast<int>(tools.choice),
                                tools.named, tools.parallel);
  for (const ToolFunction& function : tools.functions)
    key += fmt::format("\n{} {} {}", function.name, function.strict,
                       boost::json::serialize(function.parameters));
  return key;
}

std::string make_call_id(ToolFormat format, Random& random) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id = format == ToolFormat::kMistral ? "" : "call_";
  const size_t n_letters = format == ToolFormat::kMistral ? 9 : 24;
  for (size_t i = 0; i < n_letters; ++i) id += kLetters[random.below(kLetters.size())];
  return id;
}

}  // namespace assay
