#include "grammar/automaton.h"

#include <algorithm>

#include "base/check.h"

namespace assay::grammar {
namespace {

// Which states can be finished, from the final ones backwards.
class Productivity {
 public:
  explicit Productivity(const Automaton& automaton, size_t n_rules)
      : automaton_(automaton), waiting_(automaton.n_states()), known_(automaton.n_states()) {
    for (RuleId rule = 0; rule < n_rules; ++rule) starts_.push_back(automaton.rule(rule).start);
    find_waiting();
    for (StateId state = 0; state < automaton.n_states(); ++state) examine(state);
    while (!work_.empty()) {
      const StateId state = work_.back();
      work_.pop_back();
      for (const StateId other : waiting_[state]) examine(other);
    }
  }

  bool state(StateId state) const { return known_[state]; }
  bool rule(RuleId rule) const {
    return known_[starts_[rule]] &&
           (!repeats(rule) || automaton_.rule(rule).min == 0 || repeated_known(rule));
  }

 private:
  bool repeats(RuleId rule) const { return automaton_.state(starts_[rule]).repeated != kNone; }
  bool repeated_known(RuleId rule) const { return this->rule(automaton_.state(starts_[rule]).repeated); }

  void find_waiting() {
    for (StateId state = 0; state < automaton_.n_states(); ++state) {
      for (const ByteEdge& edge : automaton_.edges(state)) waiting_[edge.target].push_back(state);
      for (const StateId target : automaton_.jumps(state)) waiting_[target].push_back(state);
      for (const CallEdge& call : automaton_.calls(state)) {
        waiting_[call.next].push_back(state);
        wait_for_rule(call.rule, state);
      }
    }
  }

  // A repetition's own state is always productive; what counts is the rule that it repeats.
  void wait_for_rule(RuleId rule, StateId state) {
    waiting_[starts_[rule]].push_back(state);
    if (repeats(rule)) wait_for_rule(automaton_.state(starts_[rule]).repeated, state);
  }

  bool finishes(StateId state) const {
    const Automaton::State& own = automaton_.state(state);
    if (own.final || own.repeated != kNone) return true;
    const auto edges = automaton_.edges(state);
    const auto jumps = automaton_.jumps(state);
    const auto calls = automaton_.calls(state);
    return std::ranges::any_of(edges, [&](const ByteEdge& edge) { return known_[edge.target]; }) ||
           std::ranges::any_of(jumps, [&](StateId target) { return known_[target]; }) ||
           std::ranges::any_of(calls,
                               [&](const CallEdge& call) { return known_[call.next] && rule(call.rule); });
  }

  void examine(StateId state) {
    if (known_[state] || !finishes(state)) return;
    known_[state] = true;
    work_.push_back(state);
  }

  const Automaton& automaton_;
  std::vector<StateId> starts_;
  std::vector<std::vector<StateId>> waiting_;  // [state]: those that may be productive because of it
  std::vector<bool> known_;
  std::vector<StateId> work_;
};

}  // namespace

uint64_t Automaton::bytes() const {
  return states_.size() * sizeof(State) + edges_.size() * sizeof(ByteEdge) + jumps_.size() * sizeof(StateId) +
         calls_.size() * sizeof(CallEdge) + rules_.size() * sizeof(Rule);
}

bool AutomatonBuilder::grow() {
  if (!full()) ++size_;
  return !full();
}

StateId AutomatonBuilder::add_state() {
  if (!grow() && !finals_.empty()) return static_cast<StateId>(finals_.size() - 1);
  finals_.push_back(false);
  repeated_.push_back(kNone);
  return static_cast<StateId>(finals_.size() - 1);
}

void AutomatonBuilder::add_edge(StateId from, uint8_t low, uint8_t high, StateId to) {
  CHECK_OP(low, <=, high);
  if (grow()) edges_.push_back({from, {low, high, to}});
}

void AutomatonBuilder::add_jump(StateId from, StateId to) {
  if (grow()) jumps_.push_back({from, to});
}

void AutomatonBuilder::add_call(StateId from, RuleId rule, StateId next) {
  if (grow()) calls_.push_back({from, {rule, next}});
}

StateId AutomatonBuilder::add_text(StateId from, std::string_view text) {
  for (const char c : text) {
    const StateId next = add_state();
    const auto byte = static_cast<uint8_t>(c);
    add_edge(from, byte, byte, next);
    from = next;
  }
  return from;
}

RuleId AutomatonBuilder::add_rule() {
  grow();
  rules_.emplace_back();
  return static_cast<RuleId>(rules_.size() - 1);
}

RuleId AutomatonBuilder::add_repeat(RuleId body, uint32_t min, uint32_t max) {
  CHECK_OP(min, <=, max);
  const StateId state = add_state();
  if (!full()) repeated_[state] = body;
  const RuleId rule = add_rule();
  rules_[rule] = {state, min, max};
  return rule;
}

// Edges, jumps and calls in the order of their states.
Automaton AutomatonBuilder::flatten(RuleId root) const {
  Automaton automaton;
  automaton.root_ = root;
  automaton.rules_ = rules_;
  automaton.states_.resize(finals_.size() + 1);
  const auto distribute = [&](const auto& items, auto member, auto& out, auto value_of) {
    for (const auto& item : items) ++(automaton.states_[item.from + 1].*member);
    for (size_t i = 1; i < automaton.states_.size(); ++i)
      automaton.states_[i].*member += automaton.states_[i - 1].*member;
    out.resize(items.size());
    std::vector<uint32_t> next(finals_.size());
    for (size_t i = 0; i < next.size(); ++i) next[i] = automaton.states_[i].*member;
    for (const auto& item : items) out[next[item.from]++] = value_of(item);
  };
  using State = Automaton::State;
  distribute(edges_, &State::first_edge, automaton.edges_, [](const FromEdge& item) { return item.edge; });
  distribute(jumps_, &State::first_jump, automaton.jumps_, [](const FromJump& item) { return item.to; });
  distribute(calls_, &State::first_call, automaton.calls_, [](const FromCall& item) { return item.call; });
  for (StateId state = 0; state < finals_.size(); ++state) {
    State& own = automaton.states_[state];
    own.final = finals_[state];
    own.repeated = repeated_[state];
    own.tail = own.final && own.repeated == kNone && automaton.edges(state).empty() &&
               automaton.jumps(state).empty() && automaton.calls(state).empty();
  }
  return automaton;
}

void AutomatonBuilder::find_classes(Automaton& automaton) const {
  std::array<bool, 257> starts{};
  for (const ByteEdge& edge : automaton.edges_) {
    starts[edge.low] = true;
    starts[size_t{edge.high} + 1] = true;
  }
  uint32_t n = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && starts[byte]) ++n;
    automaton.classes_[byte] = static_cast<uint8_t>(n);
  }
  automaton.n_classes_ = n + 1;
}

Result<Automaton> AutomatonBuilder::build(RuleId root) const {
  if (full())
    return fail(ErrorCode::kResourceExhausted, "grammar", "it needs more than {} states and edges", budget_);
  for (const Rule& rule : rules_) CHECK(rule.start != kNone);
  const Automaton whole = flatten(root);
  const Productivity productive(whole, rules_.size());
  if (!productive.rule(root))
    return fail(ErrorCode::kInvalidArgument, "grammar", "no document can satisfy it");
  AutomatonBuilder pruned(budget_);
  pruned.finals_ = finals_;
  pruned.repeated_ = repeated_;
  pruned.rules_ = rules_;
  for (Rule& rule : pruned.rules_) {
    const RuleId body = repeated_[rule.start];
    if (body != kNone && !productive.rule(body)) rule.max = 0;
  }
  for (const FromEdge& item : edges_)
    if (productive.state(item.edge.target)) pruned.edges_.push_back(item);
  for (const FromJump& item : jumps_)
    if (productive.state(item.to)) pruned.jumps_.push_back(item);
  for (const FromCall& item : calls_)
    if (productive.rule(item.call.rule) && productive.state(item.call.next)) pruned.calls_.push_back(item);
  Automaton automaton = pruned.flatten(root);
  find_classes(automaton);
  return automaton;
}

}  // namespace assay::grammar
