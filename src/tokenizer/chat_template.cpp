#include "tokenizer/chat_template.h"

#include <ctime>
#include <new>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/parser.h"

namespace assay {

namespace jinja = tokenizer_internal::jinja;

struct ChatTemplate::State {
  jinja::Template tree;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

namespace {

std::unexpected<Error> report(const jinja::Failure& failure, int line) {
  return fail(failure.code, fmt::format("chat template, line {}", line), "{}", failure.what());
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  try {
    return ChatTemplate(std::make_unique<State>(State{jinja::parse_template(source)}));
  } catch (const jinja::Failure& failure) {
    return report(failure, failure.line);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kResourceExhausted, "chat template", "not enough memory to parse it");
  }
}

Result<std::string> ChatTemplate::render(const boost::json::object& context,
                                         const TemplateClock& clock) const {
  jinja::Budget budget;
  jinja::Heap heap(budget);
  int line = 1;
  try {
    const jinja::Dict* imported = jinja::import_context(heap, context);
    jinja::Interpreter interpreter(heap, *imported, clock.now ? *clock.now : std::time(nullptr));
    try {
      return interpreter.render(state_->tree);
    } catch (const jinja::Failure&) {
      line = interpreter.line();
      throw;
    }
  } catch (const jinja::Failure& failure) {
    return report(failure, failure.line > 0 ? failure.line : line);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kResourceExhausted, "chat template", "not enough memory to render it");
  }
}

}  // namespace assay
