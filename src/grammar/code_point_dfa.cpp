#include "grammar/code_point_dfa.h"

#include <algorithm>
#include <map>
#include <utility>

#include "grammar/automaton.h"

namespace assay::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

std::unexpected<Error> too_large() {
  return fail(ErrorCode::kResourceExhausted, "pattern",
              "too complex: it needs more than {} states, or too much work", CodePointDfa::kMaxStates);
}

uint32_t target_of(const CodePointDfa::State& state, uint32_t point) {
  const auto after = std::ranges::upper_bound(state.edges, point, {}, &CodePointDfa::Edge::low);
  if (after == state.edges.begin() || std::prev(after)->high < point) return kNone;
  return std::prev(after)->target;
}

// The pairs of states that two automata are in together; kNone: the second has given up.
class Product {
 public:
  Product(const CodePointDfa& a, const CodePointDfa& b, bool subtracting, WorkBudget& budget)
      : a_(a), b_(b), subtracting_(subtracting), budget_(budget) {}

  Result<CodePointDfa> run() {
    find({0, 0});
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_.size() > CodePointDfa::kMaxStates || budget_.exhausted()) return too_large();
      add_edges(i);
    }
    return CodePointDfa::of_states(std::move(states_));
  }

 private:
  using Pair = std::pair<uint32_t, uint32_t>;

  uint32_t find(Pair pair) {
    const auto [entry, added] = ids_.try_emplace(pair, static_cast<uint32_t>(pairs_.size()));
    if (added) {
      pairs_.push_back(pair);
      const bool b_final = pair.second != kNone && b_.states()[pair.second].final;
      states_.push_back({{}, a_.states()[pair.first].final && b_final != subtracting_});
    }
    return entry->second;
  }

  void add_edges(size_t index) {
    const auto [a, b] = pairs_[index];
    static const CodePointDfa::State kGivenUp;
    const CodePointDfa::State& other = b == kNone ? kGivenUp : b_.states()[b];
    for (const CodePointDfa::Edge& edge : a_.states()[a].edges) {
      uint32_t low = edge.low;
      for (const CodePointDfa::Edge& second : other.edges) {
        budget_.spend(1);
        if (second.high < low || second.low > edge.high) continue;
        if (second.low > low) add(index, low, second.low - 1, {edge.target, kNone});
        low = std::max(low, second.low);
        const uint32_t high = std::min(edge.high, second.high);
        add(index, low, high, {edge.target, second.target});
        low = high + 1;
      }
      if (low <= edge.high) add(index, low, edge.high, {edge.target, kNone});
    }
  }

  void add(size_t index, uint32_t low, uint32_t high, Pair pair) {
    if (pair.second == kNone && !subtracting_) return;
    const uint32_t target = find(pair);
    states_[index].edges.push_back({low, high, target});
    budget_.spend(1);
  }

  const CodePointDfa& a_;
  const CodePointDfa& b_;
  const bool subtracting_;
  WorkBudget& budget_;
  std::map<Pair, uint32_t> ids_;
  std::vector<Pair> pairs_;
  std::vector<CodePointDfa::State> states_;
};

}  // namespace

std::u32string to_code_points(std::string_view utf8) {
  std::u32string points;
  for (size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<uint8_t>(utf8[i]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xC2 ? 0
                          : lead < 0xE0 ? 2
                          : lead < 0xF0 ? 3
                          : lead < 0xF5 ? 4
                                        : 0;
    uint32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    bool valid = length > 0 && i + length <= utf8.size();
    for (size_t k = 1; valid && k < length; ++k) {
      const auto byte = static_cast<uint8_t>(utf8[i + k]);
      valid = (byte & 0xC0U) == 0x80;
      point = point << 6U | (byte & 0x3FU);
    }
    points.push_back(valid ? static_cast<char32_t>(point) : U'\uFFFD');
    i += valid ? length : 1;
  }
  return points;
}

CodePointSet all_code_points() {
  return {{0, kFirstSurrogate - 1}, {kLastSurrogate + 1, kLastCodePoint}};
}

CodePointSet normalised(CodePointSet set) {
  std::ranges::sort(set, {}, &CodePointRange::low);
  CodePointSet joined;
  for (const CodePointRange& range : set) {
    if (!joined.empty() && range.low <= joined.back().high + 1) {
      joined.back().high = std::max(joined.back().high, range.high);
    } else {
      joined.push_back(range);
    }
  }
  CodePointSet cut;
  for (const CodePointRange& range : joined) {
    if (range.low < kFirstSurrogate) cut.push_back({range.low, std::min(range.high, kFirstSurrogate - 1)});
    if (range.high > kLastSurrogate) cut.push_back({std::max(range.low, kLastSurrogate + 1), range.high});
  }
  return cut;
}

CodePointSet complement(const CodePointSet& set) {
  CodePointSet rest;
  uint32_t next = 0;
  for (const CodePointRange& range : set) {
    if (range.low > next) rest.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return normalised(std::move(rest));
}

CodePointDfa CodePointDfa::everything() {
  State state{{}, true};
  for (const CodePointRange& range : all_code_points()) state.edges.push_back({range.low, range.high, 0});
  return of_states({std::move(state)});
}

Result<CodePointDfa> CodePointDfa::of_texts(std::span<const std::string> texts) {
  std::vector<State> states(1);
  std::vector<std::map<uint32_t, uint32_t>> children(1);
  for (const std::string& text : texts) {
    uint32_t at = 0;
    for (const char32_t point : to_code_points(text)) {
      const auto [entry, added] = children[at].try_emplace(point, static_cast<uint32_t>(states.size()));
      at = entry->second;
      if (!added) continue;
      // A list of texts may be long; patterns may not.
      if (states.size() > 16 * kMaxStates) return too_large();
      states.emplace_back();
      children.emplace_back();
    }
    states[at].final = true;
  }
  for (size_t i = 0; i < states.size(); ++i)
    for (const auto& [point, target] : children[i]) states[i].edges.push_back({point, point, target});
  return of_states(std::move(states));
}

Result<CodePointDfa> CodePointDfa::of_length(uint32_t min, uint32_t max) {
  const uint32_t last = max == kUnbounded ? min : max;
  if (last >= kMaxStates) return too_large();
  std::vector<State> states(size_t{last} + 1);
  for (uint32_t n = 0; n <= last; ++n) {
    states[n].final = n >= min;
    if (n == last && max != kUnbounded) continue;
    for (const CodePointRange& range : all_code_points())
      states[n].edges.push_back({range.low, range.high, std::min(n + 1, last)});
  }
  return of_states(std::move(states));
}

// Drops states that cannot be finished.
CodePointDfa CodePointDfa::of_states(std::vector<State> states) {
  std::vector<std::vector<uint32_t>> before(states.size());
  for (uint32_t i = 0; i < states.size(); ++i)
    for (const Edge& edge : states[i].edges) before[edge.target].push_back(i);
  std::vector<bool> useful(states.size());
  std::vector<uint32_t> work;
  const auto mark = [&](uint32_t state) {
    if (useful[state]) return;
    useful[state] = true;
    work.push_back(state);
  };
  for (uint32_t i = 0; i < states.size(); ++i)
    if (states[i].final) mark(i);
  while (!work.empty()) {
    const uint32_t state = work.back();
    work.pop_back();
    for (const uint32_t other : before[state]) mark(other);
  }
  std::vector<uint32_t> ids(states.size(), 0);
  uint32_t n = 1;
  for (uint32_t i = 1; i < states.size(); ++i)
    if (useful[i]) ids[i] = n++;
  CodePointDfa dfa;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (i > 0 && !useful[i]) continue;
    State& kept = dfa.states_.emplace_back(State{{}, states[i].final});
    for (const Edge& edge : states[i].edges)
      if (useful[edge.target]) kept.edges.push_back({edge.low, edge.high, ids[edge.target]});
  }
  return dfa;
}

bool CodePointDfa::empty() const {
  return !states_[0].final && states_[0].edges.empty();
}

bool CodePointDfa::matches(std::string_view utf8) const {
  uint32_t at = 0;
  for (const char32_t point : to_code_points(utf8)) {
    at = target_of(states_[at], point);
    if (at == kNone) return false;
  }
  return states_[at].final;
}

Result<CodePointDfa> intersect(const CodePointDfa& a, const CodePointDfa& b, WorkBudget& budget) {
  return Product(a, b, false, budget).run();
}

Result<CodePointDfa> subtract(const CodePointDfa& a, const CodePointDfa& b, WorkBudget& budget) {
  return Product(a, b, true, budget).run();
}

}  // namespace assay::grammar
