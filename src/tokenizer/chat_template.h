// Chat templates: the subset of Jinja2 that model files use (loops, conditions, filters, tests, namespaces, macros,
// slices, method calls on strings/lists/dicts, whitespace control as transformers sets it: trim_blocks and
// lstrip_blocks on). Reference: python3-jinja2 with transformers' globals (raise_exception, strftime_now, tojson).
// As there, lists and dicts cannot be changed by a template (append, update, ...); namespaces can.
// Not supported, each a clear error: include, extends, import, autoescape; the filters urlize, urlencode, xmlattr,
// striptags, wordwrap, pprint, filesizeformat and random; integers beyond 128 bits; \N{...} escapes.
// Bounded (tokenizer/jinja/budget.h): source, nesting, evaluation steps, memory and output, so that a hostile template
// ends with kResourceExhausted. Cost: linear in what is evaluated; render() needs at most 1 MiB of stack.
// Failure: the error's `where` names the line. Thread safety: render() is const and may run in parallel.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

// What strftime_now() in a template takes for the present.
struct TemplateClock {
  std::optional<int64_t> now;  // seconds since 1970; the system's clock when absent
};

class ChatTemplate {
 public:
  // Syntax errors are kCorrupt with line number and what was expected.
  static Result<ChatTemplate> parse(std::string_view source);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `context` holds messages, tools, add_generation_prompt, bos_token, eos_token, ... as JSON.
  // raise_exception() in the template is kInvalidArgument with its text.
  Result<std::string> render(const boost::json::object& context, const TemplateClock& clock = {}) const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay
