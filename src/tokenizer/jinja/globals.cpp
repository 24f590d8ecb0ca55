// The functions that a template finds without being given them.
#include <array>
#include <ctime>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/bound.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {
namespace {

Value make_range(Interpreter& interpreter, Value&, const Arguments& arguments) {
  const BoundArguments bound("range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = !bound.find(1);
  const Integer start = only_stop ? 0 : bound.integer(0);
  const Integer stop = bound.integer(only_stop ? 0 : 1);
  const Integer step = bound.integer_or(2, 1);
  if (step == 0) fail_render("range() arg 3 must not be zero");
  constexpr Integer kLimit = Integer{1} << 62;
  for (Integer bound_value : {start, stop, step}) {
    if (bound_value > kLimit || bound_value < -kLimit) fail_limit("range() takes no numbers beyond 2^62");
  }
  Integer length = 0;
  if (step > 0 && start < stop) length = (stop - start + step - 1) / step;
  if (step < 0 && start > stop) length = (start - stop - step - 1) / -step;
  if (length > kMaxRange)
    fail_limit("range() has {} items, at most {} are allowed", print_integer(length), kMaxRange);
  return interpreter.heap().make<Range>(start, stop, step, static_cast<size_t>(length));
}

// dict(mapping or pairs, **named); namespace() takes the same.
void fill_dict(Interpreter& interpreter, Dict& dict, std::string_view function, const Arguments& arguments) {
  Heap& heap = interpreter.heap();
  if (arguments.positional.size() > 1) fail_render("{}() takes at most one positional argument", function);
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const auto* other = source.as<Dict>()) {
      heap.reserve_values(2 * other->entries.size());
      for (const auto& [key, value] : other->entries) dict.set(key, value);
    } else {
      ItemReader reader(heap, source);
      while (auto item = reader.next()) {
        const std::vector<Value> pair = collect(heap, *item);
        if (pair.size() != 2) fail_render("{}() takes pairs, found {} values", function, pair.size());
        heap.reserve_values(2);
        dict.set(pair[0], pair[1]);
      }
    }
  }
  heap.reserve_values(2 * arguments.named.size());
  for (const auto& [name, value] : arguments.named) dict.set(heap.text(name), value);
}

Value make_dict(Interpreter& interpreter, Value&, const Arguments& arguments) {
  Dict* dict = interpreter.heap().make<Dict>();
  fill_dict(interpreter, *dict, "dict", arguments);
  return dict;
}

Value make_namespace(Interpreter& interpreter, Value&, const Arguments& arguments) {
  auto* space = interpreter.heap().make<Namespace>();
  fill_dict(interpreter, space->attributes, "namespace", arguments);
  return space;
}

// cycler(a, b): next() gives its items in turn.
struct Cycler : Object {
  explicit Cycler(std::vector<Value> values) : items(std::move(values)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override {
    if (name == "current") return items[position];
    if (name == "next") {
      return bind_method(heap, "next", this, [](Interpreter&, Value& self, const Arguments&) {
        auto& cycler = *self.as<Cycler>();
        const Value item = cycler.items[cycler.position];
        cycler.position = (cycler.position + 1) % cycler.items.size();
        return item;
      });
    }
    if (name == "reset") {
      return bind_method(heap, "reset", this, [](Interpreter&, Value& self, const Arguments&) {
        self.as<Cycler>()->position = 0;
        return Value(None{});
      });
    }
    return std::nullopt;
  }

  std::vector<Value> items;
  size_t position = 0;
};

Value make_cycler(Interpreter& interpreter, Value&, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    fail_render("cycler() takes at least one item");
  interpreter.heap().reserve_values(arguments.positional.size());
  return interpreter.heap().make<Cycler>(arguments.positional);
}

// joiner(sep): nothing at the first call, the separator at each later one.
struct Joiner : Callable {
  explicit Joiner(Value text) : separator(std::move(text)) {}
  std::string_view type_name() const override { return "Joiner"; }
  Value call(Interpreter& interpreter, Arguments) override {
    return std::exchange(used, true) ? separator : interpreter.heap().text("");
  }

  Value separator;
  bool used = false;
};

Value make_joiner(Interpreter& interpreter, Value&, const Arguments& arguments) {
  const BoundArguments bound("joiner", arguments, {"sep"}, 0);
  return interpreter.heap().make<Joiner>(bound.find(0) ? bound.at(0) : interpreter.heap().text(", "));
}

Value raise_exception(Interpreter& interpreter, Value&, const Arguments& arguments) {
  const BoundArguments bound("raise_exception", arguments, {"message"}, 1);
  fail_render("{}", print(interpreter.heap(), bound.at(0)));
}

Value strftime_now(Interpreter& interpreter, Value&, const Arguments& arguments) {
  const BoundArguments bound("strftime_now", arguments, {"format"}, 1);
  // A mark at the end tells an empty result from a full buffer.
  const std::string format = std::string(bound.text(0)) + "|";
  if (format.size() > 1024) fail_limit("a date format is longer than 1024 bytes");
  const auto now = static_cast<std::time_t>(interpreter.now());
  std::tm local{};
  if (!localtime_r(&now, &local)) fail_render("the clock shows no date");
  std::string text(16 * format.size() + 256, '\0');
  const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &local);
  if (size == 0) fail_limit("a formatted date is too long");
  text.resize(size - 1);
  return interpreter.heap().text(std::move(text));
}

struct GlobalFunction {
  std::string_view name;
  MethodFunction function;
};
constexpr std::array<GlobalFunction, 7> kGlobals = {{{"range", make_range},
                                                     {"dict", make_dict},
                                                     {"namespace", make_namespace},
                                                     {"cycler", make_cycler},
                                                     {"joiner", make_joiner},
                                                     {"raise_exception", raise_exception},
                                                     {"strftime_now", strftime_now}}};

}  // namespace

std::optional<Value> make_global(Heap& heap, std::string_view name) {
  for (const GlobalFunction& global : kGlobals) {
    if (global.name == name) return bind_method(heap, global.name, Value(), global.function);
  }
  return std::nullopt;
}

}  // namespace assay::tokenizer_internal::jinja
