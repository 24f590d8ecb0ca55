#include "tokenizer/jinja/arguments.h"

#include <algorithm>

namespace assay::tokenizer_internal::jinja {

BoundArguments::BoundArguments(std::string_view function, const Arguments& arguments,
                               std::initializer_list<std::string_view> parameters, size_t required)
    : function_(function), parameters_(parameters), values_(parameters.size(), nullptr) {
  if (arguments.positional.size() > parameters_.size()) {
    fail_render("{}() takes at most {} arguments, {} were given", function, parameters_.size(),
                arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(parameters_.begin(), parameters_.end(), name);
    if (found == parameters_.end()) fail_render("{}() has no parameter '{}'", function, name);
    const auto index = static_cast<size_t>(found - parameters_.begin());
    if (values_[index]) fail_render("{}() got two values for '{}'", function, name);
    values_[index] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) fail_render("{}() lacks its argument '{}'", function, parameters_[i]);
  }
}

std::string_view BoundArguments::text(size_t index) const {
  const TextBody* text = at(index).text();
  if (!text) {
    fail_render("{}(): '{}' must be a string, not {}", function_, parameters_[index], type_name(at(index)));
  }
  return text->bytes;
}

Integer BoundArguments::integer(size_t index) const {
  auto number = at(index).whole_number();
  if (!number) {
    require_defined(at(index));
    fail_render("{}(): '{}' must be an integer, not {}", function_, parameters_[index], type_name(at(index)));
  }
  return *number;
}

Integer BoundArguments::integer_or(size_t index, Integer fallback) const {
  return values_[index] ? integer(index) : fallback;
}

bool BoundArguments::truth_or(size_t index, bool fallback) const {
  return values_[index] ? truth(*values_[index]) : fallback;
}

const Value* BoundArguments::find_some(size_t index) const {
  return values_[index] && !values_[index]->is_none() ? values_[index] : nullptr;
}

}  // namespace assay::tokenizer_internal::jinja
