#include "serve/otlp_post.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "http/client.h"
#include "http/url.h"

namespace assay {
namespace {

constexpr std::string_view kTracesPath = "/v1/traces";
constexpr double kConnectSeconds = 3;
constexpr double kTotalSeconds = 10;
constexpr uint64_t kAnswerLimit = 1 << 20;

// The form in seconds; a date is as good as no word.
double retry_after(const Headers& headers) {
  const auto text = headers.find("Retry-After");
  double seconds = 0;
  if (!text) return 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), seconds);
  return read.ec == std::errc() && seconds > 0 ? seconds : 0;
}

}  // namespace

Result<SpanExporter::Post> make_otlp_post(const std::string& endpoint) {
  std::string url = endpoint;
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with(kTracesPath)) url += kTracesPath;
  RETURN_IF_ERROR(parse_url(url));
  return [url](const std::string& body) -> Result<ExportAnswer> {
    FetchRequest request{.url = url, .method = "POST"};
    request.headers.add("Content-Type", "application/json");
    request.body = body;
    request.connect_timeout_seconds = kConnectSeconds;
    request.idle_timeout_seconds = kTotalSeconds;
    request.total_timeout_seconds = kTotalSeconds;
    request.max_body_bytes = kAnswerLimit;
    request.max_redirects = 0;
    ASSIGN_OR_RETURN(const FetchResponse response, fetch(request));
    return ExportAnswer{response.status, retry_after(response.headers)};
  };
}

}  // namespace assay
