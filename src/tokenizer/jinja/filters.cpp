#include "tokenizer/jinja/filters.h"

#include <string>
#include <unordered_map>

#include "tokenizer/jinja/filter_table.h"

namespace assay::tokenizer_internal::jinja {
namespace {

std::unordered_map<std::string_view, FilterFunction> make_table() {
  std::unordered_map<std::string_view, FilterFunction> table;
  for (auto filters : {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
    for (const FilterEntry& filter : filters) table.emplace(filter.name, filter.function);
  }
  return table;
}

}  // namespace

FilterFunction find_filter(std::string_view name) {
  static const auto table = make_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace assay::tokenizer_internal::jinja
