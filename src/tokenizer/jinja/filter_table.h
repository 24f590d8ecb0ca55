// The filters of one file each, put together by filters.cpp. Internal to the template engine.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/jinja/filters.h"

namespace assay::tokenizer_internal::jinja {

struct FilterEntry {
  std::string_view name;
  FilterFunction function;
};

std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();

}  // namespace assay::tokenizer_internal::jinja
