#include "tokenizer/jinja/loop.h"

#include <fmt/core.h>

#include "tokenizer/jinja/bound.h"

namespace assay::tokenizer_internal::jinja {

LoopObject::LoopObject(Interpreter& interpreter, const For& node, const Value& iterable, Scope* outer,
                       size_t depth0)
    : interpreter_(interpreter),
      node_(node),
      outer_(outer),
      depth0_(depth0),
      iterable_(iterable),
      reader_(interpreter.heap(), iterable) {}

// Items are tested one by one as the loop reaches them, so that the condition sees what the body has changed.
bool LoopObject::passes(const Value& item) {
  if (!node_.condition) return true;
  Scope* const saved = interpreter_.scope_;
  interpreter_.scope_ = interpreter_.heap().make<Scope>(outer_);
  interpreter_.assign(node_.target, item);
  const bool passed = truth(interpreter_.evaluate(*node_.condition));
  interpreter_.scope_ = saved;
  return passed;
}

std::optional<Value> LoopObject::read() {
  if (drained_) {
    if (next_drained_ >= drained_->size()) return std::nullopt;
    return (*drained_)[next_drained_++];
  }
  while (auto item = reader_.next()) {
    if (passes(*item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& LoopObject::peek() {
  if (!has_peeked_) {
    peeked_ = read();
    has_peeked_ = true;
  }
  return peeked_;
}

bool LoopObject::advance() {
  std::optional<Value> item = peek();
  has_peeked_ = false;
  if (!item) return false;
  previous_ = std::move(current_);
  current_ = std::move(item);
  ++passed_;
  return true;
}

size_t LoopObject::length() {
  if (length_) return *length_;
  if (!node_.condition) length_ = find_length(iterable_);
  if (!length_) {
    std::vector<Value> rest;
    while (auto item = read()) rest.push_back(std::move(*item));
    interpreter_.heap().reserve_values(rest.size());
    length_ = rest.size() + passed_ + (has_peeked_ && peeked_ ? 1 : 0);
    drained_ = std::move(rest);
  }
  return *length_;
}

std::optional<Value> LoopObject::find_item(std::string_view name) {
  if (name == "previtem") return previous_ ? *previous_ : undefined_because("there is no previous item");
  if (name == "nextitem") return peek() ? *peek() : undefined_because("there is no next item");
  return std::nullopt;
}

std::optional<Value> LoopObject::attribute(Heap& heap, std::string_view name) {
  const size_t index0 = passed_ - 1;
  if (name == "index0") return Value(index0);
  if (name == "index") return Value(passed_);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(!peek().has_value());
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0);
  if (name == "revindex0") return Value(length() - passed_);
  if (name == "depth0") return Value(depth0_);
  if (name == "depth") return Value(depth0_ + 1);
  if (name == "cycle") {
    return bind_method(heap, "cycle", this, [](Interpreter&, Value& self, const Arguments& arguments) {
      return self.as<LoopObject>()->cycle(arguments);
    });
  }
  if (name == "changed") {
    return bind_method(heap, "changed", this, [](Interpreter&, Value& self, const Arguments& arguments) {
      return Value(self.as<LoopObject>()->changed(arguments.positional));
    });
  }
  return find_item(name);
}

Value LoopObject::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) fail_render("no items for cycling given");
  return arguments.positional[(passed_ - 1) % arguments.positional.size()];
}

bool LoopObject::changed(std::vector<Value> values) {
  bool same = last_changed_ && last_changed_->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) {
    same = equal(interpreter_.heap(), (*last_changed_)[i], values[i]);
  }
  if (!same) last_changed_ = std::move(values);
  return !same;
}

Value LoopObject::call(Interpreter& interpreter, Arguments arguments) {
  if (!node_.recursive) fail_render("the loop must have the 'recursive' marker to be called recursively");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) fail_render("loop() takes one argument");
  return interpreter.render_recursive_loop(node_, arguments.positional[0], outer_, depth0_ + 1);
}

std::string LoopObject::describe() const {
  return fmt::format("<LoopContext {}/{}>", passed_,
                     length_ ? *length_ : find_length(iterable_).value_or(passed_));
}

}  // namespace assay::tokenizer_internal::jinja
