// The prompts of data/quality_prompts.jsonl, compiled in by cmake/embed.cmake.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/check.h"
#include "quality/text.h"

namespace assay {

std::string_view embedded_quality_prompts();

namespace {

std::vector<BuiltInPrompt> parse_prompts(std::string_view lines) {
  std::vector<BuiltInPrompt> prompts;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    if (const std::string_view line = lines.substr(0, end); !line.empty()) {
      boost::json::error_code error;
      const boost::json::value value = boost::json::parse(line, error);
      CHECK(!error && value.is_object());  // our own data
      const auto field = [&](const char* name) { return std::string(value.at(name).as_string()); };
      prompts.push_back({field("id"), field("kind"), field("prompt")});
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return prompts;
}

}  // namespace

const std::vector<BuiltInPrompt>& built_in_prompts() {
  static const std::vector<BuiltInPrompt> prompts = parse_prompts(embedded_quality_prompts());
  return prompts;
}

}  // namespace assay
