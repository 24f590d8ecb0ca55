// Between JSON and the template's values. Internal to the template engine.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

// The context of a rendering. Nesting is bounded.
Dict* import_context(Heap& heap, const boost::json::object& context);

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  bool multiline = false;
  std::string indent;  // one level
  std::string item_separator = ", ", key_separator = ": ";
};

// Python's json.dumps.
std::string dump_json(Heap& heap, const Value& value, const JsonStyle& style);

}  // namespace assay::tokenizer_internal::jinja
