#include "grammar/json_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace assay::grammar {
namespace {

constexpr uint32_t kIndentSpaces = 40, kIndentTabs = 16;
constexpr uint32_t kFractionDigits = 17, kExponentDigits = 2;

struct ShortEscape {
  uint8_t code;
  char letter;
};
constexpr std::array kShortEscapes = {ShortEscape{'\b', 'b'}, ShortEscape{'\t', 't'}, ShortEscape{'\n', 'n'},
                                      ShortEscape{'\f', 'f'}, ShortEscape{'\r', 'r'}};

}  // namespace

std::string json_spelling(std::string_view text) {
  std::string spelled = "\"";
  for (const char c : text) {
    const auto code = static_cast<uint8_t>(c);
    const auto escape = std::ranges::find(kShortEscapes, code, &ShortEscape::code);
    if (c == '"' || c == '\\') {
      spelled += '\\';
      spelled += c;
    } else if (escape != kShortEscapes.end()) {
      spelled += '\\';
      spelled += escape->letter;
    } else if (code < 0x20) {
      spelled += fmt::format("\\u{:04x}", code);
    } else {
      spelled += c;
    }
  }
  return spelled + '"';
}

RuleId JsonRules::new_rule(StateId start) {
  const RuleId rule = builder_.add_rule();
  builder_.set_start(rule, start);
  return rule;
}

RuleId JsonRules::one_byte(uint8_t byte) {
  const auto [entry, added] = bytes_.try_emplace(byte, kNone);
  if (added) {
    const StateId start = builder_.add_state(), end = builder_.add_state();
    builder_.add_edge(start, byte, byte, end);
    builder_.set_final(end);
    entry->second = new_rule(start);
  }
  return entry->second;
}

RuleId JsonRules::space() {
  if (space_ != kNone) return space_;
  const StateId start = builder_.add_state(), line = builder_.add_state(), end = builder_.add_state();
  builder_.set_final(start);
  builder_.set_final(end);
  builder_.add_edge(start, ' ', ' ', end);
  builder_.add_edge(start, '\n', '\n', line);
  builder_.add_call(line, builder_.add_repeat(one_byte(' '), 0, kIndentSpaces), end);
  builder_.add_call(line, builder_.add_repeat(one_byte('\t'), 1, kIndentTabs), end);
  return space_ = new_rule(start);
}

StateId JsonRules::after_space(StateId from) {
  const StateId next = builder_.add_state();
  builder_.add_call(from, space(), next);
  return next;
}

RuleId JsonRules::literal(std::string_view text) {
  const auto [entry, added] = literals_.try_emplace(std::string(text), kNone);
  if (added) {
    const StateId start = builder_.add_state();
    builder_.set_final(builder_.add_text(start, text));
    entry->second = new_rule(start);
  }
  return entry->second;
}

// --- strings ---

// The state from which n_bytes continuation bytes lead to `target`.
StateId JsonRules::continuation(StateId target, int n_bytes) {
  if (n_bytes == 0) return target;
  const auto [entry, added] = continuations_.try_emplace({target, n_bytes}, 0);
  if (added) {
    const StateId state = builder_.add_state();
    builder_.add_edge(state, 0x80, 0xBF, continuation(target, n_bytes - 1));
    continuations_[{target, n_bytes}] = state;
    return state;
  }
  return entry->second;
}

// UTF-8 of the code points low to high, which all take the same number of bytes (Thompson 1992).
void JsonRules::add_utf8(StateId from, uint32_t low, uint32_t high, StateId to) {
  const auto spell = [](uint32_t point) {
    std::vector<uint8_t> bytes;
    if (point < 0x80) return std::vector<uint8_t>{static_cast<uint8_t>(point)};
    const int n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    const uint32_t lead = n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0;
    bytes.push_back(static_cast<uint8_t>(lead | (point >> (6 * (n - 1)))));
    for (int i = n - 2; i >= 0; --i)
      bytes.push_back(static_cast<uint8_t>(0x80U | ((point >> (6 * i)) & 0x3FU)));
    return bytes;
  };
  const std::vector<uint8_t> a = spell(low), b = spell(high);
  // Bytes i.. run from a's to b's; the bytes before are fixed.
  const auto range = [&](auto& self, StateId state, size_t i, bool tight_low, bool tight_high) -> void {
    const uint8_t first = tight_low ? a[i] : 0x80, last = tight_high ? b[i] : 0xBF;
    const int n_after = static_cast<int>(a.size() - i - 1);
    if (n_after == 0) return builder_.add_edge(state, first, last, to);
    if (tight_low && tight_high && first == last) {
      const StateId next = builder_.add_state();
      builder_.add_edge(state, first, first, next);
      return self(self, next, i + 1, true, true);
    }
    const uint8_t inner_first = tight_low ? static_cast<uint8_t>(first + 1) : first;
    const uint8_t inner_last = tight_high ? static_cast<uint8_t>(last - 1) : last;
    if (tight_low) {
      const StateId next = builder_.add_state();
      builder_.add_edge(state, first, first, next);
      self(self, next, i + 1, true, false);
    }
    if (inner_first <= inner_last)
      builder_.add_edge(state, inner_first, inner_last, continuation(to, n_after));
    if (tight_high) {
      const StateId next = builder_.add_state();
      builder_.add_edge(state, last, last, next);
      self(self, next, i + 1, false, true);
    }
  };
  range(range, from, 0, true, true);
}

// Escapes of the control characters low to high, all below 0x20.
void JsonRules::add_control(StateId from, uint32_t low, uint32_t high, StateId to) {
  const StateId escape = builder_.add_state();
  builder_.add_edge(from, '\\', '\\', escape);
  std::array<bool, 32> by_number{};
  for (uint32_t code = low; code <= high; ++code) by_number[code] = true;
  for (const ShortEscape& known : kShortEscapes) {
    if (known.code < low || known.code > high) continue;
    const auto letter = static_cast<uint8_t>(known.letter);
    builder_.add_edge(escape, letter, letter, to);
    by_number[known.code] = false;
  }
  const StateId zeros = builder_.add_text(escape, "u00");
  for (uint8_t digit = 0; digit < 2; ++digit) {
    const StateId next = builder_.add_state();
    builder_.add_edge(zeros, static_cast<uint8_t>('0' + digit), static_cast<uint8_t>('0' + digit), next);
    for (size_t i = 0; i < 16; ++i) {
      if (!by_number[size_t{digit} * 16 + i]) continue;
      const auto hex = static_cast<uint8_t>("0123456789abcdef"[i]);
      builder_.add_edge(next, hex, hex, to);
    }
  }
}

void JsonRules::add_code_points(StateId from, uint32_t low, uint32_t high, StateId to) {
  if (low < 0x20) add_control(from, low, std::min(high, 0x1FU), to);
  for (const uint32_t special : {uint32_t{'"'}, uint32_t{'\\'}}) {
    if (special < low || special > high) continue;
    const StateId escape = builder_.add_state();
    builder_.add_edge(from, '\\', '\\', escape);
    builder_.add_edge(escape, static_cast<uint8_t>(special), static_cast<uint8_t>(special), to);
  }
  struct Piece {
    uint32_t low, high;
  };
  for (const Piece piece : {Piece{0x20, '"' - 1}, Piece{'"' + 1, '\\' - 1}, Piece{'\\' + 1, 0x7F},
                            Piece{0x80, 0x7FF}, Piece{0x800, 0xFFFF}, Piece{0x10000, kLastCodePoint}}) {
    const uint32_t first = std::max(low, piece.low), last = std::min(high, piece.high);
    if (first <= last) add_utf8(from, first, last, to);
  }
}

// n hexadecimal digits from a new state to `to`.
StateId JsonRules::add_hex(StateId from, int n_digits, StateId to) {
  for (int i = 1; i <= n_digits; ++i) {
    const StateId next = i == n_digits ? to : builder_.add_state();
    builder_.add_edge(from, '0', '9', next);
    builder_.add_edge(from, 'A', 'F', next);
    builder_.add_edge(from, 'a', 'f', next);
    from = next;
  }
  return from;
}

void JsonRules::add_surrogate_pair(StateId after_u, StateId to) {
  const StateId d = builder_.add_state(), high = builder_.add_state(), low_d = builder_.add_state(),
                low = builder_.add_state();
  for (const uint8_t letter : {'D', 'd'}) builder_.add_edge(after_u, letter, letter, d);
  // D000 to D7FF stand for themselves.
  const StateId basic = builder_.add_state();
  builder_.add_edge(d, '0', '7', basic);
  add_hex(basic, 2, to);
  builder_.add_edge(d, '8', '9', high);
  for (const uint8_t letter : {'A', 'B', 'a', 'b'}) builder_.add_edge(d, letter, letter, high);
  const StateId after_high = builder_.add_state();
  add_hex(high, 2, after_high);
  const StateId second_u = builder_.add_text(after_high, "\\u");
  for (const uint8_t letter : {'D', 'd'}) builder_.add_edge(second_u, letter, letter, low_d);
  builder_.add_edge(low_d, 'C', 'F', low);
  builder_.add_edge(low_d, 'c', 'f', low);
  add_hex(low, 2, to);
}

void JsonRules::add_character(StateId from, StateId to) {
  builder_.add_edge(from, 0x20, '"' - 1, to);
  builder_.add_edge(from, '"' + 1, '\\' - 1, to);
  builder_.add_edge(from, '\\' + 1, 0x7F, to);
  for (const CodePointRange& range : all_code_points())
    for (const CodePointRange& piece : {CodePointRange{0x80, 0x7FF}, CodePointRange{0x800, 0xFFFF},
                                        CodePointRange{0x10000, kLastCodePoint}}) {
      const uint32_t first = std::max(range.low, piece.low), last = std::min(range.high, piece.high);
      if (first <= last) add_utf8(from, first, last, to);
    }
  const StateId escape = builder_.add_state(), after_u = builder_.add_state(), plain = builder_.add_state();
  builder_.add_edge(from, '\\', '\\', escape);
  for (const char letter : std::string_view("\"\\/bfnrt"))
    builder_.add_edge(escape, static_cast<uint8_t>(letter), static_cast<uint8_t>(letter), to);
  builder_.add_edge(escape, 'u', 'u', after_u);
  builder_.add_edge(after_u, '0', '9', plain);
  for (const auto& [first, last] :
       {std::pair<uint8_t, uint8_t>{'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}})
    builder_.add_edge(after_u, first, last, plain);
  add_hex(plain, 3, to);
  add_surrogate_pair(after_u, to);
}

RuleId JsonRules::character() {
  if (character_ != kNone) return character_;
  const StateId start = builder_.add_state(), end = builder_.add_state();
  add_character(start, end);
  builder_.set_final(end);
  return character_ = new_rule(start);
}

RuleId JsonRules::string() {
  if (string_ != kNone) return string_;
  const StateId start = builder_.add_state(), body = builder_.add_state(), end = builder_.add_state();
  builder_.add_edge(start, '"', '"', body);
  add_character(body, body);
  builder_.add_edge(body, '"', '"', end);
  builder_.set_final(end);
  return string_ = new_rule(start);
}

RuleId JsonRules::string_of_length(uint32_t min, uint32_t max) {
  if (min == 0 && max == kUnbounded) return string();
  const StateId start = builder_.add_state(), body = builder_.add_state(), tail = builder_.add_state(),
                end = builder_.add_state();
  builder_.add_edge(start, '"', '"', body);
  builder_.add_call(body, builder_.add_repeat(character(), min, max == kUnbounded ? min : max), tail);
  if (max == kUnbounded) add_character(tail, tail);
  builder_.add_edge(tail, '"', '"', end);
  builder_.set_final(end);
  return new_rule(start);
}

RuleId JsonRules::string_of(const CodePointDfa& content) {
  const StateId start = builder_.add_state(), end = builder_.add_state();
  builder_.set_final(end);
  std::vector<StateId> states;
  for (size_t i = 0; i < content.states().size(); ++i) states.push_back(builder_.add_state());
  builder_.add_edge(start, '"', '"', states[0]);
  for (size_t i = 0; i < states.size() && !builder_.full(); ++i) {
    for (const CodePointDfa::Edge& edge : content.states()[i].edges)
      add_code_points(states[i], edge.low, edge.high, states[edge.target]);
    if (content.states()[i].final) builder_.add_edge(states[i], '"', '"', end);
  }
  return new_rule(start);
}

// --- numbers ---

// min to max digits; max is finite.
void JsonRules::add_digits(StateId from, StateId to, uint32_t min, uint32_t max) {
  if (min == 0) builder_.add_jump(from, to);
  for (uint32_t n = 1; n <= max; ++n) {
    const StateId next = builder_.add_state();
    builder_.add_edge(from, '0', '9', next);
    if (n >= min) builder_.add_jump(next, to);
    from = next;
  }
}

RuleId JsonRules::integer() {
  if (integer_ != kNone) return integer_;
  const StateId start = builder_.add_state(), first = builder_.add_state(), more = builder_.add_state(),
                end = builder_.add_state();
  builder_.add_edge(start, '-', '-', first);
  builder_.add_jump(start, first);
  builder_.add_edge(first, '0', '0', end);
  builder_.add_edge(first, '1', '9', more);
  add_digits(more, end, 0, kMaxIntegerDigits - 1);
  builder_.set_final(end);
  return integer_ = new_rule(start);
}

RuleId JsonRules::number() {
  if (number_ != kNone) return number_;
  const StateId start = builder_.add_state(), whole = builder_.add_state(), point = builder_.add_state(),
                fraction = builder_.add_state(), e = builder_.add_state(), digits = builder_.add_state(),
                end = builder_.add_state();
  builder_.add_call(start, integer(), whole);
  builder_.add_jump(whole, fraction);
  builder_.add_edge(whole, '.', '.', point);
  add_digits(point, fraction, 1, kFractionDigits);
  builder_.add_jump(fraction, end);
  for (const uint8_t letter : {'E', 'e'}) builder_.add_edge(fraction, letter, letter, e);
  builder_.add_jump(e, digits);
  for (const uint8_t sign : {'+', '-'}) builder_.add_edge(e, sign, sign, digits);
  add_digits(digits, end, 1, kExponentDigits);
  builder_.set_final(end);
  return number_ = new_rule(start);
}

// --- any value ---

RuleId JsonRules::value(uint32_t depth) {
  CHECK_OP(depth, <=, kMaxDepth);
  if (values_[depth] != kNone) return values_[depth];
  const StateId start = builder_.add_state(), end = builder_.add_state();
  builder_.set_final(end);
  const RuleId rule = values_[depth] = new_rule(start);
  for (const std::string_view text : {"true", "false", "null"}) builder_.add_call(start, literal(text), end);
  builder_.add_call(start, string(), end);
  builder_.add_call(start, number(), end);
  if (depth < kMaxDepth) {
    builder_.add_call(start, object(depth), end);
    builder_.add_call(start, array(depth), end);
  }
  return rule;
}

RuleId JsonRules::object(uint32_t depth) {
  CHECK_OP(depth, <, kMaxDepth);
  if (objects_[depth] != kNone) return objects_[depth];
  const StateId start = builder_.add_state(), key = builder_.add_state(), colon = builder_.add_state(),
                open = builder_.add_state(), content = builder_.add_state(), after = builder_.add_state(),
                comma = builder_.add_state(), close = builder_.add_state(), end = builder_.add_state();
  const RuleId rule = objects_[depth] = new_rule(start);
  builder_.add_edge(start, '{', '{', open);
  builder_.add_call(open, space(), key);
  builder_.add_edge(key, '}', '}', end);
  builder_.add_call(key, string(), colon);
  builder_.add_edge(colon, ':', ':', content);
  builder_.add_call(after_space(content), value(depth + 1), after);
  builder_.add_edge(after, ',', ',', comma);
  builder_.add_call(after_space(comma), string(), colon);
  builder_.add_call(after, space(), close);
  builder_.add_edge(close, '}', '}', end);
  builder_.set_final(end);
  return rule;
}

RuleId JsonRules::array(uint32_t depth) {
  CHECK_OP(depth, <, kMaxDepth);
  if (arrays_[depth] != kNone) return arrays_[depth];
  const StateId start = builder_.add_state(), open = builder_.add_state(), first = builder_.add_state(),
                after = builder_.add_state(), comma = builder_.add_state(), close = builder_.add_state(),
                end = builder_.add_state();
  const RuleId rule = arrays_[depth] = new_rule(start);
  builder_.add_edge(start, '[', '[', open);
  builder_.add_call(open, space(), first);
  builder_.add_edge(first, ']', ']', end);
  builder_.add_call(first, value(depth + 1), after);
  builder_.add_edge(after, ',', ',', comma);
  builder_.add_call(after_space(comma), value(depth + 1), after);
  builder_.add_call(after, space(), close);
  builder_.add_edge(close, ']', ']', end);
  builder_.set_final(end);
  return rule;
}

}  // namespace assay::grammar
