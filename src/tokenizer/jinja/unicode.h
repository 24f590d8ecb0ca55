// Characters as Python's str sees them: UTF-8 decoding, white space, case, classes. Internal to the template
// engine. Invalid bytes count as one character each and survive unchanged (as Python's "surrogateescape"
// does). Source: tables generated from Python itself. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::tokenizer_internal::jinja {

// The character at `position`, which moves past it. `position` must be inside the text.
char32_t decode_character(std::string_view text, size_t& position);
void append_character(std::string& out, char32_t character);
size_t count_characters(std::string_view text);
// Byte offset of the index-th character; text.size() when the text is shorter.
size_t character_offset(std::string_view text, size_t index);

bool is_space(char32_t character);
bool is_alphabetic(char32_t character);
bool is_decimal(char32_t character);
bool is_digit(char32_t character);
bool is_numeric(char32_t character);
bool is_alphanumeric(char32_t character);
bool is_word(char32_t character);  // \w of Python's re
bool is_lowercase(char32_t character);
bool is_uppercase(char32_t character);
bool is_titlecase(char32_t character);
bool is_printable(char32_t character);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);    // str.title()
std::string capitalize(std::string_view text);  // str.capitalize()
std::string swap_case(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

}  // namespace assay::tokenizer_internal::jinja
