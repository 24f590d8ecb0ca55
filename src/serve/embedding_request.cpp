#include "serve/embedding_request.h"

#include <fmt/format.h>

#include "serve/field_reader.h"
#include "serve/json_body.h"

namespace assay {

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body, const ApiLimits& limits,
                                                    int dimensions) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(std::move(object.error()));
  FieldReader fields(*object);
  EmbeddingRequest request;
  request.model = fields.text("model").value_or("");
  if (request.model.empty()) {
    fields.fail("model", "is required: the name of a model as /v1/models lists it",
                "missing_required_parameter");
  }
  request.inputs = read_prompts(fields, "input", {limits.n_vocab, limits.max_inputs});
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    fields.fail("encoding_format",
                fmt::format(R"(expected "float" or "base64", found "{}")", format.substr(0, 40)));
  request.base64 = format == "base64";
  const auto wanted = fields.integer("dimensions", 1, 1 << 24);
  if (wanted && *wanted != dimensions) {
    fields.fail("dimensions",
                fmt::format("this model's embeddings have {} dimensions and cannot be shortened", dimensions),
                "unsupported_parameter");
  }
  const std::string pooling = fields.text("pooling").value_or("mean");
  if (pooling != "mean" && pooling != "last")
    fields.fail("pooling", fmt::format(R"(expected "mean" or "last", found "{}")", pooling.substr(0, 40)));
  request.pooling = pooling == "last" ? Pooling::kLast : Pooling::kMean;
  fields.text("user");
  if (const auto priority = fields.integer("priority", -kMaxPriority, kMaxPriority))
    request.priority = static_cast<int>(*priority);
  fields.finish();
  if (fields.failed()) return std::unexpected(fields.error());
  return request;
}

}  // namespace assay
