// A grammar over bytes: rules that may call each other, each a small non-deterministic automaton (a recursive
// transition network, Woods 1970). Made by AutomatonBuilder, then immutable.
//
// build() removes whatever cannot lead to the end of a document, so that every state that is left can be
// finished: whoever follows the automaton never comes to a dead end. Failure: kInvalidArgument when no
// document at all is possible; kResourceExhausted when the budget was exceeded (the builder itself goes on
// without growing, so that callers may check once). Thread safety: an Automaton is immutable, a builder is
// one thread's. Cost: linear.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::grammar {

using StateId = uint32_t;
using RuleId = uint32_t;
inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
inline constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

struct ByteEdge {
  uint8_t low = 0;
  uint8_t high = 0;  // inclusive
  StateId target = 0;
};
struct CallEdge {
  RuleId rule = 0;
  StateId next = 0;  // where to go on when the rule has been matched
};
// A rule is a start state, and the counts of its repetition where that state repeats another rule.
struct Rule {
  StateId start = kNone;
  uint32_t min = 0;
  uint32_t max = 0;
};

class Automaton {
 public:
  struct State {
    uint32_t first_edge = 0, first_jump = 0, first_call = 0;  // the ends are those of the next state
    RuleId repeated = kNone;  // this state matches that rule as often as its frame's counts say
    bool final = false;
    bool tail = false;  // final and nothing else: a call that returns here need not return
  };

  RuleId root() const { return root_; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  const State& state(StateId id) const { return states_[id]; }
  size_t n_states() const { return states_.size() - 1; }
  std::span<const ByteEdge> edges(StateId id) const {
    return std::span(edges_).subspan(states_[id].first_edge,
                                     states_[id + 1].first_edge - states_[id].first_edge);
  }
  std::span<const StateId> jumps(StateId id) const {
    return std::span(jumps_).subspan(states_[id].first_jump,
                                     states_[id + 1].first_jump - states_[id].first_jump);
  }
  std::span<const CallEdge> calls(StateId id) const {
    return std::span(calls_).subspan(states_[id].first_call,
                                     states_[id + 1].first_call - states_[id].first_call);
  }

  // Bytes of one class are alike to every edge.
  uint32_t n_classes() const { return n_classes_; }
  uint8_t class_of(uint8_t byte) const { return classes_[byte]; }
  uint64_t bytes() const;  // of memory

 private:
  friend class AutomatonBuilder;
  std::vector<State> states_;  // one more than there are states
  std::vector<ByteEdge> edges_;
  std::vector<StateId> jumps_;
  std::vector<CallEdge> calls_;
  std::vector<Rule> rules_;
  RuleId root_ = 0;
  std::array<uint8_t, 256> classes_{};
  uint32_t n_classes_ = 1;
};

class AutomatonBuilder {
 public:
  static constexpr size_t kDefaultBudget = 400'000;  // states, edges, jumps and calls together

  explicit AutomatonBuilder(size_t budget = kDefaultBudget) : budget_(budget) {}

  StateId add_state();
  void set_final(StateId state) { finals_[state] = true; }
  void add_edge(StateId from, uint8_t low, uint8_t high, StateId to);
  void add_jump(StateId from, StateId to);  // without a byte
  void add_call(StateId from, RuleId rule, StateId next);
  // A chain of states that spells `text`; returns its end.
  StateId add_text(StateId from, std::string_view text);

  RuleId add_rule();  // its start must be set before build()
  void set_start(RuleId rule, StateId start) { rules_[rule].start = start; }
  StateId start(RuleId rule) const { return rules_[rule].start; }
  // `body` from min to max times (kUnbounded). The body must not match the empty text.
  RuleId add_repeat(RuleId body, uint32_t min, uint32_t max);

  bool full() const { return size_ > budget_; }  // what is added now is lost
  size_t size() const { return size_; }
  size_t budget() const { return budget_; }

  Result<Automaton> build(RuleId root) const;

 private:
  struct FromEdge {
    StateId from;
    ByteEdge edge;
  };
  struct FromJump {
    StateId from, to;
  };
  struct FromCall {
    StateId from;
    CallEdge call;
  };

  bool grow();
  Automaton flatten(RuleId root) const;
  void find_classes(Automaton& automaton) const;

  size_t budget_;
  size_t size_ = 0;
  std::vector<bool> finals_;
  std::vector<RuleId> repeated_;  // by state
  std::vector<FromEdge> edges_;
  std::vector<FromJump> jumps_;
  std::vector<FromCall> calls_;
  std::vector<Rule> rules_;
};

}  // namespace assay::grammar
