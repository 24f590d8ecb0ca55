// The `loop` variable: reads the items of a for statement one by one and knows its place among them.
// Internal to the template engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {

class LoopObject : public Callable {
 public:
  // `outer` is the scope around the statement; the loop's condition sees that and the loop's targets.
  LoopObject(Interpreter& interpreter, const For& node, const Value& iterable, Scope* outer, size_t depth0);

  std::string_view type_name() const override { return "LoopContext"; }
  std::string describe() const override;
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
  // loop(items): the loop once more, one level deeper.
  Value call(Interpreter& interpreter, Arguments arguments) override;

  // Moves to the next item; false at the end.
  bool advance();
  const Value& current() const { return *current_; }
  const For& node() const { return node_; }
  Scope* outer() const { return outer_; }

 private:
  friend class Interpreter;
  std::optional<Value> read();
  bool passes(const Value& item);
  const std::optional<Value>& peek();
  size_t length();
  std::optional<Value> find_item(std::string_view name);
  Value cycle(const Arguments& arguments) const;
  bool changed(std::vector<Value> values);

  Interpreter& interpreter_;
  const For& node_;
  Scope* const outer_;
  const size_t depth0_;
  Value iterable_;
  ItemReader reader_;
  std::optional<std::vector<Value>> drained_;  // the items after the peeked one, once length was asked for
  size_t next_drained_ = 0;
  std::optional<Value> previous_, current_, peeked_;
  bool has_peeked_ = false;
  size_t passed_ = 0;  // items given out so far, the current one included
  std::optional<size_t> length_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace assay::tokenizer_internal::jinja
