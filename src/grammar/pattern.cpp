#include "grammar/pattern.h"

#include <algorithm>
#include <map>
#include <vector>

#include "grammar/pattern_tree.h"

namespace assay::grammar {
namespace {

using Kind = PatternNode::Kind;

// Thompson's construction (1968).
class Nfa {
 public:
  struct Edge {
    CodePointRange range;
    uint32_t target;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<uint32_t> jumps;
  };

  uint32_t add_state() {
    if (states_.size() < kMaxNfaStates) states_.emplace_back();
    return static_cast<uint32_t>(states_.size() - 1);
  }
  bool full() const { return states_.size() >= kMaxNfaStates; }
  size_t size() const { return states_.size(); }
  const State& state(uint32_t id) const { return states_[id]; }

  void jump(uint32_t from, uint32_t to) { states_[from].jumps.push_back(to); }

  void loop(uint32_t state, const CodePointSet& set) {
    for (const CodePointRange& range : set) states_[state].edges.push_back({range, state});
  }

  // Adds what the node matches after `from`; returns where that ends.
  uint32_t add(const PatternNode& node, uint32_t from) {
    if (full()) return from;
    switch (node.kind) {
      case Kind::kSet: {
        const uint32_t to = add_state();
        for (const CodePointRange& range : node.set) states_[from].edges.push_back({range, to});
        return to;
      }
      case Kind::kSequence:
        for (const PatternNode& child : node.children) from = add(child, from);
        return from;
      case Kind::kChoice: {
        const uint32_t to = add_state();
        for (const PatternNode& child : node.children) {
          const uint32_t begin = add_state();
          jump(from, begin);
          jump(add(child, begin), to);
        }
        return to;
      }
      case Kind::kRepeat:
        return add_repeat(node, from);
      case Kind::kCount:
        break;
    }
    return from;
  }

 private:
  uint32_t add_repeat(const PatternNode& node, uint32_t from) {
    const PatternNode& body = node.children[0];
    const bool once_or_more = node.max == kUnbounded && node.min > 0;
    const uint32_t n_copies = once_or_more ? node.min - 1 : node.min;  // nested x+ must not double
    for (uint32_t i = 0; i < n_copies && !full(); ++i) from = add(body, from);
    const uint32_t to = add_state();
    if (node.max == kUnbounded) {
      const uint32_t again = add_state();
      jump(from, again);
      const uint32_t after = add(body, again);
      jump(after, again);
      jump(once_or_more ? after : again, to);
      return to;
    }
    for (uint32_t i = node.min; i < node.max && !full(); ++i) {
      jump(from, to);
      const uint32_t next = add_state();
      jump(from, next);
      from = add(body, next);
    }
    jump(from, to);
    return to;
  }

  std::vector<State> states_;
};

// The subset construction, within bounds.
class Determiniser {
 public:
  Determiniser(const Nfa& nfa, uint32_t final, WorkBudget& budget)
      : nfa_(nfa), final_(final), budget_(budget), seen_(nfa.size()) {}

  Result<CodePointDfa> run(uint32_t start) {
    find(close({start}));
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_.size() > CodePointDfa::kMaxStates || budget_.exhausted())
        return fail(ErrorCode::kResourceExhausted, "pattern",
                    "too complex: it needs more than {} states, or too much work", CodePointDfa::kMaxStates);
      add_edges(i);
    }
    if (budget_.exhausted())  // edges may be missing
      return fail(ErrorCode::kResourceExhausted, "pattern", "too complex: it takes too much work");
    return CodePointDfa::of_states(std::move(states_));
  }

 private:
  using Set = std::vector<uint32_t>;  // sorted

  Set close(Set work) {
    Set closed;
    while (!work.empty()) {
      const uint32_t state = work.back();
      work.pop_back();
      if (seen_[state]) continue;
      seen_[state] = true;
      closed.push_back(state);
      for (const uint32_t target : nfa_.state(state).jumps) work.push_back(target);
    }
    for (const uint32_t state : closed) seen_[state] = false;
    budget_.spend(closed.size());
    std::ranges::sort(closed);
    return closed;
  }

  uint32_t find(Set set) {
    const auto [entry, added] = ids_.try_emplace(std::move(set), static_cast<uint32_t>(sets_.size()));
    if (added) {
      sets_.push_back(&entry->first);
      states_.push_back({{}, std::ranges::binary_search(entry->first, final_)});
    }
    return entry->second;
  }

  // Cuts the code points where any edge starts or ends; what lies between two cuts is alike to all edges.
  void add_edges(size_t index) {
    std::vector<Nfa::Edge> edges;
    std::vector<uint32_t> cuts;
    for (const uint32_t state : *sets_[index]) {
      for (const Nfa::Edge& edge : nfa_.state(state).edges) {
        edges.push_back(edge);
        cuts.push_back(edge.range.low);
        cuts.push_back(edge.range.high + 1);
      }
    }
    std::ranges::sort(cuts);
    cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size() && !budget_.exhausted(); ++i) {
      Set targets;
      for (const Nfa::Edge& edge : edges)
        if (edge.range.low <= cuts[i] && cuts[i] <= edge.range.high) targets.push_back(edge.target);
      budget_.spend(edges.size());
      if (targets.empty()) continue;
      const uint32_t target = find(close(std::move(targets)));
      std::vector<CodePointDfa::Edge>& own = states_[index].edges;
      if (!own.empty() && own.back().target == target && own.back().high + 1 == cuts[i]) {
        own.back().high = cuts[i + 1] - 1;
      } else {
        own.push_back({cuts[i], cuts[i + 1] - 1, target});
      }
    }
  }

  const Nfa& nfa_;
  const uint32_t final_;
  WorkBudget& budget_;
  std::vector<bool> seen_;
  std::map<Set, uint32_t> ids_;
  std::vector<const Set*> sets_;
  std::vector<CodePointDfa::State> states_;
};

}  // namespace

Result<CodePointDfa> compile_pattern(std::string_view pattern, WorkBudget& budget) {
  if (pattern.size() > kMaxPatternBytes)
    return fail(ErrorCode::kUnsupported, "pattern", "longer than {} bytes", kMaxPatternBytes);
  ASSIGN_OR_RETURN(const std::vector<PatternBranch> branches, parse_pattern(pattern));
  Nfa nfa;
  const uint32_t start = nfa.add_state();
  const uint32_t end = nfa.add_state();
  for (const PatternBranch& branch : branches) {
    const uint32_t begin = nfa.add_state();
    nfa.jump(start, begin);
    if (!branch.from_start) nfa.loop(begin, all_code_points());
    const uint32_t body = nfa.add_state();  // a state of its own: the loop must not be entered again
    nfa.jump(begin, body);
    const uint32_t last = nfa.add(branch.body, body);
    const uint32_t tail = nfa.add_state();
    nfa.jump(last, tail);
    if (!branch.to_end) nfa.loop(tail, all_code_points());
    nfa.jump(tail, end);
  }
  budget.spend(nfa.size());
  if (nfa.full())
    return fail(ErrorCode::kResourceExhausted, "pattern", "too complex: it needs more than {} states",
                kMaxNfaStates);
  return Determiniser(nfa, end, budget).run(start);
}

}  // namespace assay::grammar
