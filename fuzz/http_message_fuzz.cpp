// Requests and responses from any bytes: no crash, bounded memory, and the cutting of the input does not
// matter.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/message_parser.h"

namespace {

constexpr assay::ParserLimits kLimits{.head_bytes = 512, .body_bytes = 256};

// What was understood, up to the first failure.
std::string read_requests(std::string_view text, size_t piece) {
  assay::RequestParser parser(kLimits);
  std::string seen;
  for (size_t start = 0; start < text.size(); start += piece) {
    parser.append(text.substr(start, piece));
    assay::ParseStatus status;
    while ((status = parser.parse()) == assay::ParseStatus::kDone) {
      const assay::HttpRequest request = parser.take();
      if (request.body.size() > kLimits.body_bytes || !request.path.starts_with('/')) std::abort();
      seen += request.method + " " + request.target + " " + request.body + "\n";
    }
    if (status == assay::ParseStatus::kFailed) break;
  }
  return seen;
}

void read_response(std::string_view text, bool head) {
  size_t body = 0;
  assay::ResponseParser parser(kLimits, head, [&](std::string_view bytes) {
    body += bytes.size();
    return true;
  });
  const size_t half = text.size() / 2;
  parser.feed(text.substr(0, half));
  parser.feed(text.substr(half));
  parser.feed({});
  parser.feed_end();
  if (body > kLimits.body_bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = read_requests(text, text.size() + 1);
  const std::string cut = read_requests(text, 1 + data[0] % 16);
  // Limits may be noticed earlier in small pieces, so that one reading can be the beginning of the other.
  if (!whole.starts_with(cut) && !cut.starts_with(whole)) std::abort();
  read_response(text, (data[0] & 1) != 0);
  return 0;
}
