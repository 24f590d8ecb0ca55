#include "serve/special_text_mask.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <utility>

namespace assay {
namespace {

namespace json = boost::json;

// Supplementary private use area A: U+F0000 to U+FFFFD, in UTF-8 F3 B0..BF xx xx.
constexpr uint32_t kFirst = 0xF0000;
constexpr uint32_t kLast = 0xFFFFD;
constexpr size_t kLength = 4;

bool is_placeholder_at(std::string_view text, size_t at) {
  return at + kLength <= text.size() && text[at] == '\xF3' &&
         static_cast<unsigned char>(text[at + 1]) >= 0xB0U;
}

std::string utf8_of(uint32_t code) {
  return {static_cast<char>(0xF0U | code >> 18U), static_cast<char>(0x80U | (code >> 12U & 0x3FU)),
          static_cast<char>(0x80U | (code >> 6U & 0x3FU)), static_cast<char>(0x80U | (code & 0x3FU))};
}

using Visit = std::function<void(json::string&)>;

// Every string in `value`; names of members too, which the visitor sees as strings.
void visit(json::value& value, const Visit& each) {
  if (auto* text = value.if_string()) return each(*text);
  if (auto* list = value.if_array()) {
    for (json::value& item : *list) visit(item, each);
    return;
  }
  auto* object = value.if_object();
  if (object == nullptr) return;
  json::object renamed;
  for (auto& member : *object) {
    json::string name(member.key());
    each(name);
    visit(member.value(), each);
    renamed[name] = std::move(member.value());
  }
  *object = std::move(renamed);
}

}  // namespace

void SpecialTextMask::collect(std::string_view text) {
  for (const TextRange& range : tokenizer_.find_special(text))
    spellings_.emplace(text.substr(range.begin, range.end - range.begin));
}

bool SpecialTextMask::choose_placeholders() {
  uint32_t code = kFirst;
  for (const std::string& spelling : spellings_) {
    while (code <= kLast && taken_.contains(utf8_of(code))) ++code;
    if (code > kLast) return false;
    placeholders_[spelling] = utf8_of(code);
    hidden_[utf8_of(code++)] = spelling;
  }
  return true;
}

std::string SpecialTextMask::masked(std::string_view text) const {
  std::string result;
  size_t done = 0;
  for (const TextRange& range : tokenizer_.find_special(text)) {
    result += text.substr(done, range.begin - done);
    result += placeholders_.find(text.substr(range.begin, range.end - range.begin))->second;
    done = range.end;
  }
  return result.append(text.substr(done));
}

bool SpecialTextMask::hide(std::vector<ChatMessage>& messages, json::array& tools) {
  const auto each_text = [&](const std::function<void(std::string&)>& work) {
    const Visit in_json = [&](json::string& text) {
      std::string copy(text);
      work(copy);
      text = copy;
    };
    for (ChatMessage& message : messages) {
      work(message.content);
      work(message.name);
      work(message.tool_call_id);
      for (json::value& call : message.tool_calls) visit(call, in_json);
    }
    for (json::value& tool : tools) visit(tool, in_json);
  };
  each_text([&](std::string& text) { collect(text); });
  if (spellings_.empty()) return true;
  each_text([&](std::string& text) {
    for (size_t at = 0; at < text.size(); ++at)
      if (is_placeholder_at(text, at)) taken_.insert(text.substr(at, kLength));
  });
  if (!choose_placeholders()) return false;
  each_text([&](std::string& text) { text = masked(text); });
  return true;
}

SpecialTextMask::Revealed SpecialTextMask::reveal(std::string rendered) const {
  if (hidden_.empty()) return {std::move(rendered), {}};
  Revealed result;
  for (size_t at = 0; at < rendered.size();) {
    const auto hidden = is_placeholder_at(rendered, at)
                            ? hidden_.find(std::string_view(rendered).substr(at, kLength))
                            : hidden_.end();
    if (hidden == hidden_.end()) {
      result.text += rendered[at++];
      continue;
    }
    const std::string& spelling = hidden->second;
    result.literal.push_back({result.text.size(), result.text.size() + spelling.size()});
    result.text += spelling;
    at += kLength;
  }
  return result;
}

}  // namespace assay
