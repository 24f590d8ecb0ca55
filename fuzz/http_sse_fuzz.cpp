// Any bytes, cut at any places, give the same events as the whole; nothing crashes or grows without bound.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "http/sse.h"

namespace {

std::vector<std::string> parse(std::string_view text, size_t piece) {
  std::vector<std::string> events;
  assay::SseParser parser(4096);
  for (size_t start = 0; start < text.size(); start += piece) {
    const auto fed = parser.feed(text.substr(start, piece), [&](const assay::SseEvent& event) {
      events.push_back(event.type + '\0' + event.data + '\0' + event.id);
    });
    if (!fed) {
      events.emplace_back("refused");
      break;
    }
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (parse(text, text.size() + 1) != parse(text, 1 + data[0] % 16)) std::abort();
  return 0;
}
