// response_format of a request: text, any JSON object, or a JSON schema that the answer must be valid
// against. Source: OpenAI API reference (structured outputs). Pure. Failure: ApiError, recorded in the
// reader.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "base/error.h"
#include "grammar/automaton.h"
#include "serve/field_reader.h"

namespace assay {

struct ResponseFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema, kCount };
  Kind kind = Kind::kText;
  boost::json::value schema;  // kJsonSchema
};

// The schema's depth and size are those of the body; what it holds is checked when it is compiled.
ResponseFormat read_response_format(FieldReader& fields);

// Failure: as grammar::compile_json_schema. Not for kText.
Result<grammar::Automaton> compile_response_format(const ResponseFormat& format);
// Equal keys, equal grammars.
std::string grammar_key(const ResponseFormat& format);

}  // namespace assay
