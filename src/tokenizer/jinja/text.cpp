#include "tokenizer/jinja/text.h"

#include <algorithm>

#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

size_t last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && is_continuation(text[begin])) --begin;
  size_t end = begin;
  decode_character(text, end);
  return end == text.size() ? begin : text.size() - 1;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::vector<std::string_view> split_words(Heap& heap, std::string_view text, Integer limit) {
  std::vector<std::string_view> parts;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    heap.budget().spend();
    if (limit >= 0 && static_cast<Integer>(parts.size()) == limit) {
      parts.push_back(text);  // the space at its end stays
      break;
    }
    size_t end = 0;
    for (size_t next = 0; next < text.size(); end = next) {
      if (is_space(decode_character(text, next))) break;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<std::string_view> split_words_from_right(Heap& heap, std::string_view text, Integer limit) {
  std::vector<std::string_view> parts;
  for (text = strip_right(text); !text.empty(); text = strip_right(text)) {
    heap.budget().spend();
    if (limit >= 0 && static_cast<Integer>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      const size_t previous = last_character(text.substr(0, begin));
      size_t position = previous;
      if (is_space(decode_character(text, position))) break;
      begin = previous;
    }
    parts.push_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::ranges::reverse(parts);
  return parts;
}

}  // namespace

std::string_view strip_text(Heap& heap, std::string_view text, const Value* characters, bool left,
                            bool right) {
  if (!characters) {
    if (left) text = strip_left(text);
    return right ? strip_right(text) : text;
  }
  if (!characters->text()) fail_render("strip argument must be none or str, not {}", type_name(*characters));
  const std::string_view set = characters->text()->bytes;
  const auto stripped = [&](std::string_view character) {
    heap.budget().spend_bytes(set.size());
    return set.find(character) != std::string_view::npos;
  };
  while (left && !text.empty()) {
    size_t end = 0;
    decode_character(text, end);
    if (!stripped(text.substr(0, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    const size_t begin = last_character(text);
    if (!stripped(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split_at(Heap& heap, std::string_view text, std::string_view separator,
                                       Integer limit, bool from_right) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<Integer>(parts.size()) < limit) {
    heap.budget().spend();
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> split_at_space(Heap& heap, std::string_view text, Integer limit,
                                             bool from_right) {
  return from_right ? split_words_from_right(heap, text, limit) : split_words(heap, text, limit);
}

std::vector<std::string_view> split_lines(Heap& heap, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const char32_t c = decode_character(text, i);
    if (!is_line_end(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    heap.budget().spend();
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

Value make_list(Heap& heap, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (std::string_view part : parts) items.push_back(heap.text(std::string(part)));
  return heap.list(std::move(items));
}

std::string replace_text(Heap& heap, std::string_view text, std::string_view old,
                         std::string_view replacement, Integer limit) {
  heap.budget().spend_bytes(text.size());
  std::string out;
  const auto append = [&](std::string_view part) {
    heap.budget().spend_bytes(part.size());
    if (part.size() > kMaxHeapBytes - out.size())
      fail_limit("a text is longer than {} MiB", kMaxHeapBytes >> 20);
    out += part;
  };
  Integer done = 0;
  size_t position = 0;
  while (limit < 0 || done < limit) {
    const size_t at = text.find(old, position);
    if (at == std::string_view::npos) break;
    append(text.substr(position, at - position));
    append(replacement);
    ++done;
    position = at + old.size();
    if (!old.empty()) continue;
    // An empty pattern matches before every character and at the end.
    if (position >= text.size()) return out;
    decode_character(text, position);
    append(text.substr(at, position - at));
  }
  append(text.substr(position));
  return out;
}

std::string pad_text(Heap& heap, std::string_view text, Integer width, std::string_view fill,
                     Alignment alignment) {
  const auto length = static_cast<Integer>(count_characters(text));
  const Integer missing = width > length ? width - length : 0;
  if (missing > Integer{kMaxHeapBytes} / 4) fail_limit("a text is longer than {} MiB", kMaxHeapBytes >> 20);
  heap.budget().spend_bytes(static_cast<uint64_t>(missing) * fill.size());
  Integer left = 0;
  if (alignment == Alignment::kRight) left = missing;
  // Python's rule for an odd rest.
  if (alignment == Alignment::kCenter) left = missing / 2 + (missing & width & 1);
  std::string out;
  for (Integer i = 0; i < left; ++i) out += fill;
  out += text;
  for (Integer i = left; i < missing; ++i) out += fill;
  return out;
}

bool is_cased_as(std::string_view text, bool upper) {
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = decode_character(text, i);
    if (is_titlecase(c) || (upper ? is_lowercase(c) : is_uppercase(c))) return false;
    found = found || (upper ? is_uppercase(c) : is_lowercase(c));
  }
  return found;
}

std::optional<Span> find_span(Heap& heap, const TextBody& text, const BoundArguments& bound, size_t index) {
  heap.budget().spend_bytes(text.bytes.size());
  const auto length = static_cast<Integer>(text.length);
  const auto resolve = [&](const Value* value, Integer fallback) {
    if (!value || value->is_none()) return fallback;
    auto number = value->whole_number();
    if (!number) fail_render("slice indices must be integers or none, not {}", type_name(*value));
    return *number < 0 ? std::max<Integer>(*number + length, 0) : *number;
  };
  const Integer start = resolve(bound.find(index), 0);
  const Integer stop = std::min(resolve(bound.find(index + 1), length), length);
  if (start > length || start > stop) return std::nullopt;
  const size_t begin = character_offset(text.bytes, static_cast<size_t>(start));
  const std::string_view rest = std::string_view(text.bytes).substr(begin);
  return Span{rest.substr(0, character_offset(rest, static_cast<size_t>(stop - start))),
              static_cast<size_t>(start)};
}

}  // namespace assay::tokenizer_internal::jinja
