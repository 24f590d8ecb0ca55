// The format specification of Python's format(value, spec). Internal to the template engine.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

// [[fill]align][sign][#][0][width][,][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0: by type
  char sign = '-';
  bool alternate = false;
  bool grouped = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

FormatSpec parse_format_spec(std::string_view spec);
std::string format_value(Heap& heap, const Value& value, const FormatSpec& spec);

// A float in one of the notations e E f F g G, without sign handling beyond '-'.
std::string format_real(double value, char type, int precision, bool alternate);

}  // namespace assay::tokenizer_internal::jinja
