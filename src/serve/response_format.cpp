#include "serve/response_format.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "grammar/json_schema.h"

namespace assay {
namespace {

void read_schema(FieldReader& format, ResponseFormat& out) {
  const boost::json::object* object = format.object("json_schema");
  if (format.failed()) return;
  if (object == nullptr) return format.fail("json_schema", "is required", "missing_required_parameter");
  FieldReader inner(*object, format.full_name("json_schema"));
  const auto name = inner.text("name");
  if (!name && !inner.failed()) inner.fail("name", "is required", "missing_required_parameter");
  inner.text("description");
  inner.boolean("strict");  // every schema is kept to
  const boost::json::value* schema = inner.any("schema");
  if (schema == nullptr) {
    inner.fail("schema", "is required", "missing_required_parameter");
  } else if (!schema->is_object() && !schema->is_bool()) {
    inner.fail_type("schema", "a JSON schema", *schema);
  } else {
    out.schema = *schema;
  }
  inner.finish();
  if (inner.failed()) format.fail_with(inner.error());
}

}  // namespace

ResponseFormat read_response_format(FieldReader& fields) {
  ResponseFormat out;
  const boost::json::object* format = fields.object("response_format");
  if (format == nullptr) return out;
  FieldReader inner(*format, "response_format");
  const auto type = inner.text("type");
  if (!type) {
    inner.fail("type", "is required", "missing_required_parameter");
  } else if (*type == "json_object") {
    out.kind = ResponseFormat::Kind::kJsonObject;
  } else if (*type == "json_schema") {
    out.kind = ResponseFormat::Kind::kJsonSchema;
    read_schema(inner, out);
  } else if (*type != "text") {
    inner.fail("type",
               fmt::format("expected text, json_object or json_schema, found \"{}\"", type->substr(0, 40)));
  }
  inner.finish();
  if (inner.failed()) fields.fail_with(inner.error());
  return out;
}

Result<grammar::Automaton> compile_response_format(const ResponseFormat& format) {
  CHECK(format.kind != ResponseFormat::Kind::kText);
  return format.kind == ResponseFormat::Kind::kJsonObject ? grammar::compile_json_object()
                                                          : grammar::compile_json_schema(format.schema);
}

std::string grammar_key(const ResponseFormat& format) {
  return format.kind == ResponseFormat::Kind::kJsonObject
             ? "json_object"
             : "json_schema " + boost::json::serialize(format.schema);
}

}  // namespace assay
