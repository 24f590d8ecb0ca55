#include "numeric/precision.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>

namespace assay {
namespace {

constexpr int kMaxGroup = 1 << 20;

constexpr std::array<std::string_view, 9> kRoles = {
    "embedding", "attention_query", "attention_key", "attention_value", "attention_output", "gate", "up",
    "down",      "output"};
static_assert(kRoles.size() == static_cast<size_t>(Role::kCount));

constexpr std::array<std::string_view, 4> kCorrections = {"", "fit", "awq", "gptq"};
static_assert(kCorrections.size() == static_cast<size_t>(Correction::kCount));
constexpr std::array<std::string_view, 3> kSparsities = {"", "block50", "global50"};
static_assert(kSparsities.size() == static_cast<size_t>(Sparsity::kCount));

template <class... Args>
std::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, "precision", format, std::forward<Args>(args)...);
}

// Decimal digits only, no sign, no leading zero that would not print back.
Result<int> parse_number(std::string_view text, std::string_view meaning) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool plain = code == std::errc{} && end == text.data() + text.size() && value >= 0;
  if (!plain || (text.size() > 1 && text.front() == '0')) {
    return refuse("expected {}, found '{}'", meaning, text);
  }
  return value;
}

struct Halves {
  Format first;
  Format second;
};

// "bf16" or "bf16/int8".
Result<Halves> parse_halves(std::string_view text) {
  const size_t slash = text.find('/');
  ASSIGN_OR_RETURN(const Format first, parse_format(text.substr(0, slash)));
  if (slash == std::string_view::npos) return Halves{first, first};
  ASSIGN_OR_RETURN(const Format second, parse_format(text.substr(slash + 1)));
  return Halves{first, second};
}

std::string print_halves(Format first, Format second) {
  return first == second ? std::string(name(first)) : fmt::format("{}/{}", name(first), name(second));
}

// "down@3=bf16", the '!' already removed.
Result<Exemption> parse_exemption(std::string_view text) {
  const size_t at = text.find('@');
  const size_t equals = text.find('=');
  if (at == std::string_view::npos || equals == std::string_view::npos || equals < at) {
    return refuse("expected an exemption like !down@3=bf16 or !output@*=f32, found '!{}'", text);
  }
  Exemption exemption;
  ASSIGN_OR_RETURN(exemption.role, parse_role(text.substr(0, at)));
  const std::string_view layer = text.substr(at + 1, equals - at - 1);
  if (layer != "*") {
    ASSIGN_OR_RETURN(exemption.layer, parse_number(layer, "a layer number or *"));
  }
  ASSIGN_OR_RETURN(exemption.weights, parse_weight_format(text.substr(equals + 1)));
  return exemption;
}

// Index of `word` among `names`, 0 (the empty name) when it is none of them.
template <size_t kSize>
size_t find_name(const std::array<std::string_view, kSize>& names, std::string_view word) {
  for (size_t i = 1; i < kSize; ++i) {
    if (names[i] == word) return i;
  }
  return 0;
}

// "/block50/gptq" behind a group: each kind at most once, in any order.
Result<void> parse_methods(std::string_view text, std::string_view whole, WeightFormat& weights) {
  while (!text.empty()) {
    const size_t slash = text.find('/', 1);
    const std::string_view word = text.substr(1, slash == std::string_view::npos ? slash : slash - 1);
    text.remove_prefix(slash == std::string_view::npos ? text.size() : slash);
    if (const size_t correction = find_name(kCorrections, word);
        correction != 0 && weights.correction == Correction::kNone) {
      weights.correction = static_cast<Correction>(correction);
    } else if (const size_t sparsity = find_name(kSparsities, word);
               sparsity != 0 && weights.sparsity == Sparsity::kNone) {
      weights.sparsity = static_cast<Sparsity>(sparsity);
    } else {
      return refuse("'{}': expected at most one of /block50, /global50 and one of /fit, /awq, /gptq, found '/{}'",
                    whole, word);
    }
  }
  if (weights.sparsity != Sparsity::kNone && (weights.format != Format::kInt4 || weights.group < 32)) {
    return refuse("'{}': only int4 weights with groups of 32 and more can be sparse", whole);
  }
  return {};
}

// Which of w=, a= and kv= a text has already given.
struct Seen {
  bool weights = false;
  bool activations = false;
  bool cache = false;
};

Result<void> parse_part(std::string_view part, Precision& precision, Seen& seen) {
  if (part.front() == '!') {
    ASSIGN_OR_RETURN(Exemption exemption, parse_exemption(part.substr(1)));
    precision.exemptions.push_back(exemption);
    return {};
  }
  const size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  bool* given = key == "w"    ? &seen.weights
                : key == "a"  ? &seen.activations
                : key == "kv" ? &seen.cache
                              : nullptr;
  if (equals == std::string_view::npos || given == nullptr) {
    return refuse("expected w=..., a=..., kv=... or !role@layer=..., found '{}'", part);
  }
  if (*given) return refuse("'{}=' is given twice", key);
  *given = true;
  const std::string_view value = part.substr(equals + 1);
  if (given == &seen.weights) {
    ASSIGN_OR_RETURN(precision.weights, parse_weight_format(value));
    return {};
  }
  ASSIGN_OR_RETURN(const Halves halves, parse_halves(value));
  (given == &seen.activations ? precision.prefill_activations : precision.kv_key) = halves.first;
  (given == &seen.activations ? precision.decode_activations : precision.kv_value) = halves.second;
  return {};
}

}  // namespace

std::string_view name(Role role) {
  return kRoles.at(static_cast<size_t>(role));
}

std::string_view name(Correction correction) {
  return kCorrections.at(static_cast<size_t>(correction));
}

std::string_view name(Sparsity sparsity) {
  return kSparsities.at(static_cast<size_t>(sparsity));
}

Result<Role> parse_role(std::string_view text) {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (kRoles[i] == text) return static_cast<Role>(i);
  }
  return fail(ErrorCode::kInvalidArgument, "role", "'{}' is not a role; expected one of {}", text,
              fmt::join(kRoles, ", "));
}

WeightFormat Precision::weights_for(int layer, Role role) const {
  for (auto exemption = exemptions.rbegin(); exemption != exemptions.rend(); ++exemption) {
    if (exemption->role == role && (exemption->layer < 0 || exemption->layer == layer))
      return exemption->weights;
  }
  return weights;
}

std::string to_string(const WeightFormat& weights) {
  if (weights.as_shipped) return "file";
  if (!is_integer(weights.format)) return std::string(name(weights.format));
  std::string text = fmt::format("{}:{}", name(weights.format), weights.group);
  if (weights.sparsity != Sparsity::kNone) text += fmt::format("/{}", name(weights.sparsity));
  if (weights.correction != Correction::kNone) text += fmt::format("/{}", name(weights.correction));
  return text;
}

Result<WeightFormat> parse_weight_format(std::string_view text) {
  WeightFormat weights;
  if (text == "file") {
    weights.as_shipped = true;
    return weights;
  }
  const std::string_view plain = text.substr(0, text.find('/'));
  const size_t colon = plain.find(':');
  ASSIGN_OR_RETURN(weights.format, parse_format(plain.substr(0, colon)));
  if (!is_integer(weights.format) && plain.size() < text.size()) {
    return refuse("'{}': only int8 and int4 weights have methods", text);
  }
  if (colon != std::string_view::npos) {
    if (!is_integer(weights.format)) {
      return refuse("'{}': only int8 and int4 weights have a group", text);
    }
    ASSIGN_OR_RETURN(weights.group, parse_number(plain.substr(colon + 1), "a group size"));
    if ((weights.group != 16 && weights.group % 32 != 0) || weights.group <= 0 || weights.group > kMaxGroup) {
      return refuse("'{}': a group is 16 or a multiple of 32 up to {}", text, kMaxGroup);
    }
  }
  RETURN_IF_ERROR(parse_methods(text.substr(plain.size()), text, weights));
  return weights;
}

std::string to_string(const Precision& precision) {
  std::string text = fmt::format("w={} a={} kv={}", to_string(precision.weights),
                                 print_halves(precision.prefill_activations, precision.decode_activations),
                                 print_halves(precision.kv_key, precision.kv_value));
  for (const Exemption& exemption : precision.exemptions) {
    const std::string layer = exemption.layer < 0 ? "*" : std::to_string(exemption.layer);
    text += fmt::format(" !{}@{}={}", name(exemption.role), layer, to_string(exemption.weights));
  }
  return text;
}

Result<Precision> parse_precision(std::string_view text) {
  Precision precision;
  Seen seen;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view part = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (part.empty()) continue;
    RETURN_IF_ERROR(parse_part(part, precision, seen));
  }
  if (!seen.weights)
    return refuse("does not say the weights; expected w=..., as in \"w=int8:32 a=int8 kv=bf16\"");
  return precision;
}

}  // namespace assay
