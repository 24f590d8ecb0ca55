// Python's work on texts that methods and filters share. Internal to the template engine.
// Every function charges the heap's budget where its result can be larger than what went in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

// Strips white space, or the characters of `characters` (a text) when there are some.
std::string_view strip_text(Heap& heap, std::string_view text, const Value* characters, bool left,
                            bool right);

// `limit` is the largest number of splits, negative: no limit.
std::vector<std::string_view> split_at(Heap& heap, std::string_view text, std::string_view separator,
                                       Integer limit, bool from_right);
std::vector<std::string_view> split_at_space(Heap& heap, std::string_view text, Integer limit,
                                             bool from_right);
std::vector<std::string_view> split_lines(Heap& heap, std::string_view text, bool keep_ends);
Value make_list(Heap& heap, const std::vector<std::string_view>& parts);

std::string replace_text(Heap& heap, std::string_view text, std::string_view old,
                         std::string_view replacement, Integer limit);

enum class Alignment { kLeft, kRight, kCenter, kCount };
// Fills up to `width` characters.
std::string pad_text(Heap& heap, std::string_view text, Integer width, std::string_view fill,
                     Alignment alignment);

// islower() and isupper(): no character of the other case, and one of this.
bool is_cased_as(std::string_view text, bool upper);

// The part [start, stop) of a text that find(), count() and the like look at.
struct Span {
  std::string_view text;
  size_t first = 0;  // its first character's index
};
// Arguments `start` and `stop` are at `index` and after. Nothing when start lies behind the end.
std::optional<Span> find_span(Heap& heap, const TextBody& text, const BoundArguments& bound, size_t index);

}  // namespace assay::tokenizer_internal::jinja
