// The live page's files, compiled into the binary by cmake/web.cmake. Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

namespace assay {

struct WebAsset {
  std::string_view name;  // "page.js"
  std::string_view content_type;
  std::string_view etag;  // of the content, without quotes
  std::string_view plain;
  std::string_view gzip;
};

// "index.html" first. "echarts.js" is absent where the build could not fetch it.
std::span<const WebAsset> web_assets();

}  // namespace assay
