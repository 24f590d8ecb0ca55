#include "modelfile/show_name.h"

#include <fmt/format.h>

#include <iterator>

namespace assay::modelfile_internal {

std::string show_name(std::string_view name) {
  constexpr size_t kShown = 80;
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  text += name.size() > kShown ? "...'" : "'";
  return text;
}

}  // namespace assay::modelfile_internal
