#include "grammar/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

namespace assay::grammar {
namespace {

constexpr int kMaxSignificant = 15;

// Magnitudes, as digits: "12" and "5" for 12.5.
struct Decimal {
  std::string whole = "0";
  std::string fraction;
};

// The shortest decimal that reads as the double, without an exponent.
Decimal decimal_of(double magnitude) {
  std::string shortest = fmt::format("{}", magnitude);
  if (const size_t e = shortest.find('e'); e != std::string::npos) {
    // d.ddde+-xx: move the point.
    const int exponent = std::stoi(shortest.substr(e + 1));
    std::string digits = shortest.substr(0, e);
    const size_t point = digits.find('.');
    int before = static_cast<int>(point == std::string::npos ? digits.size() : point) + exponent;
    std::erase(digits, '.');
    if (before <= 0) return {"0", std::string(static_cast<size_t>(-before), '0') + digits};
    if (static_cast<size_t>(before) >= digits.size())
      return {digits + std::string(static_cast<size_t>(before) - digits.size(), '0'), ""};
    return {digits.substr(0, static_cast<size_t>(before)), digits.substr(static_cast<size_t>(before))};
  }
  const size_t point = shortest.find('.');
  if (point == std::string::npos) return {shortest, ""};
  std::string fraction = shortest.substr(point + 1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return {shortest.substr(0, point), fraction};
}

// The decimals from low to high, both not negative. `with_fraction` false: whole numbers, and the bounds have
// none.
class Interval {
 public:
  struct End {
    Decimal value;
    bool exclusive = false;
  };

  Interval(AutomatonBuilder& builder, End low, std::optional<End> high, bool with_fraction, StateId end)
      : builder_(builder),
        low_(std::move(low)),
        high_(std::move(high)),
        with_fraction_(with_fraction),
        end_(end) {
    max_whole_ = with_fraction_ ? kMaxSignificant : kMaxIntegerDigits;
    if (high_) max_whole_ = std::min(max_whole_, static_cast<int>(high_->value.whole.size()));
  }

  // Adds them after `from`.
  void add(StateId from) {
    for (int length = static_cast<int>(low_.value.whole.size()); length <= max_whole_; ++length) {
      length_ = length;
      known_.clear();
      const bool tight_low = length == static_cast<int>(low_.value.whole.size());
      const bool tight_high = high_ && length == static_cast<int>(high_->value.whole.size());
      add_whole(from, 0, tight_low, tight_high);
    }
  }

 private:
  static uint8_t digit(const std::string& digits, int i) {
    return static_cast<size_t>(i) < digits.size() ? static_cast<uint8_t>(digits[static_cast<size_t>(i)])
                                                  : '0';
  }
  static bool rest_is_zero(const std::string& digits, int i) {
    return static_cast<size_t>(i) >= digits.size() ||
           digits.find_first_not_of('0', static_cast<size_t>(i)) == std::string::npos;
  }

  using Step = void (Interval::*)(StateId, int, bool, bool);

  // Edges for the digit at i of `low` and `high`, each followed by `step` at i + 1.
  void add_digit(StateId from, int i, bool tight_low, bool tight_high, const std::string& low,
                 const std::string& high, uint8_t least, Step step) {
    uint8_t first = std::max(least, tight_low ? digit(low, i) : uint8_t{'0'});
    uint8_t last = tight_high ? digit(high, i) : uint8_t{'9'};
    if (first > last) return;
    const bool low_edge = tight_low && first == digit(low, i), high_edge = tight_high;
    const auto to = [&](uint8_t a, uint8_t b, bool still_low, bool still_high) {
      const auto [entry, added] =
          known_.try_emplace({step == &Interval::add_fraction, i + 1, still_low, still_high}, 0);
      if (added) {
        entry->second = builder_.add_state();
        const StateId next = entry->second;
        (this->*step)(next, i + 1, still_low, still_high);
        return builder_.add_edge(from, a, b, next);
      }
      builder_.add_edge(from, a, b, entry->second);
    };
    if (low_edge && high_edge && first == last) return to(first, first, true, true);
    if (low_edge) to(first, first, true, false), ++first;
    if (high_edge) {
      to(last, last, false, true);
      if (last == '0') return;
      --last;
    }
    if (first <= last) to(first, last, false, false);
  }

  void add_whole(StateId from, int i, bool tight_low, bool tight_high) {
    static const std::string kNothing;
    if (i < length_) {
      const uint8_t least = i == 0 && length_ > 1 ? '1' : '0';
      return add_digit(from, i, tight_low, tight_high, low_.value.whole,
                       high_ ? high_->value.whole : kNothing, least, &Interval::add_whole);
    }
    if (ends_well(0, tight_low, tight_high)) builder_.add_jump(from, end_);
    if (!with_fraction_ || length_ >= kMaxSignificant) return;
    const StateId point = builder_.add_state();
    builder_.add_edge(from, '.', '.', point);
    add_fraction_digit(point, 0, tight_low, tight_high);
  }

  // After i digits of the fraction, i > 0.
  void add_fraction(StateId from, int i, bool tight_low, bool tight_high) {
    if (ends_well(i, tight_low, tight_high)) builder_.add_jump(from, end_);
    if (length_ + i < kMaxSignificant) add_fraction_digit(from, i, tight_low, tight_high);
  }

  void add_fraction_digit(StateId from, int i, bool tight_low, bool tight_high) {
    static const std::string kNothing;
    add_digit(from, i, tight_low, tight_high, low_.value.fraction, high_ ? high_->value.fraction : kNothing,
              '0', &Interval::add_fraction);
  }

  // Whether the number may end after i digits of its fraction.
  bool ends_well(int i, bool tight_low, bool tight_high) const {
    if (tight_low && (low_.exclusive || !rest_is_zero(low_.value.fraction, i))) return false;
    return !(tight_high && high_->exclusive && rest_is_zero(high_->value.fraction, i));
  }

  AutomatonBuilder& builder_;
  const End low_;
  const std::optional<End> high_;
  const bool with_fraction_;
  const StateId end_;
  int max_whole_ = 0;
  int length_ = 0;
  std::map<std::tuple<bool, int, bool, bool>, StateId> known_;
};

RuleId add_range(AutomatonBuilder& builder, const std::optional<NumberBound>& low,
                 const std::optional<NumberBound>& high, bool with_fraction) {
  const StateId start = builder.add_state(), end = builder.add_state();
  builder.set_final(end);
  const auto end_of = [](const NumberBound& bound) {
    return Interval::End{decimal_of(std::abs(bound.value)), bound.exclusive};
  };
  // From zero up.
  if (!high || high->value > 0 || (high->value == 0 && !high->exclusive)) {
    const bool from_zero = !low || low->value < 0;
    Interval(builder, from_zero ? Interval::End{} : end_of(*low),
             high ? std::optional(end_of(*high)) : std::nullopt, with_fraction, end)
        .add(start);
  }
  // Below zero, as magnitudes.
  if (!low || low->value < 0) {
    const StateId minus = builder.add_state();
    builder.add_edge(start, '-', '-', minus);
    const bool from_zero = !high || high->value >= 0;
    Interval(builder, from_zero ? Interval::End{.value = {}, .exclusive = true} : end_of(*high),
             low ? std::optional(end_of(*low)) : std::nullopt, with_fraction, end)
        .add(minus);
  }
  const RuleId rule = builder.add_rule();
  builder.set_start(rule, start);
  return rule;
}

// A bound of whole numbers, inclusive.
std::optional<NumberBound> whole(const std::optional<NumberBound>& bound, bool lower) {
  if (!bound) return std::nullopt;
  double value = lower ? std::ceil(bound->value) : std::floor(bound->value);
  if (bound->exclusive && value == bound->value) value += lower ? 1 : -1;
  return NumberBound{value, false};
}

bool empty(const std::optional<NumberBound>& low, const std::optional<NumberBound>& high) {
  return low && high &&
         (low->value > high->value || (low->value == high->value && (low->exclusive || high->exclusive)));
}

}  // namespace

RuleId add_integer_range(AutomatonBuilder& builder, const std::optional<NumberBound>& low,
                         const std::optional<NumberBound>& high) {
  const auto least = whole(low, true), most = whole(high, false);
  return empty(least, most) ? kNone : add_range(builder, least, most, false);
}

RuleId add_number_range(AutomatonBuilder& builder, const std::optional<NumberBound>& low,
                        const std::optional<NumberBound>& high) {
  return empty(low, high) ? kNone : add_range(builder, low, high, true);
}

}  // namespace assay::grammar
