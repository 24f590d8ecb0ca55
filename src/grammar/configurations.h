// Where in an automaton a text may be: every possible stack of calls at once. A frame is a state with the
// counts of its repetition and, as its parent, the configuration to return to; frames of one state are
// merged, so that an ambiguous grammar costs no more than its states (a graph-structured stack, Tomita 1987).
// Configurations are interned: equal ones have equal ids, and a step from one by one byte is computed once.
//
// Ownership: borrows the automaton. Thread safety: one thread. Failure: overflowed() when one closure would
// exceed kMaxFrames; the configuration is then dead. Cost: a known step is one table look-up.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.h"

namespace assay::grammar {

using ConfigId = uint32_t;

struct Frame {
  StateId state = 0;
  uint32_t min = 0, max = 0;  // what is left of a repetition; kUnbounded stays
  ConfigId parent = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

class Configurations {
 public:
  static constexpr ConfigId kDead = 0;   // nothing may follow, and the text may not end
  static constexpr ConfigId kEnded = 1;  // nothing may follow; as a parent: below it there is nothing
  static constexpr size_t kMaxFrames = 1 << 16;

  explicit Configurations(const Automaton& automaton);

  const Automaton& automaton() const { return automaton_; }
  ConfigId start();
  ConfigId step(ConfigId from, uint8_t byte);
  // The configuration of one frame that waits for a byte, without what else its state leads to.
  ConfigId only(const Frame& frame) { return intern({&frame, 1}, false); }
  // The configuration after a return to `parent`.
  ConfigId close_parent(ConfigId parent);
  // Counts above `limit` lowered to it, in all frames below too: alike for whatever reads at most limit - 1
  // bytes.
  ConfigId clamp(ConfigId id, uint32_t limit);
  // The same configuration of another object over the same automaton.
  ConfigId import(const Configurations& from, ConfigId id);

  // Frames with byte edges, sorted by state and counts.
  std::span<const Frame> frames(ConfigId id) const {
    return std::span(frames_).subspan(configs_[id].first, configs_[id].n_frames);
  }
  bool may_end(ConfigId id) const { return configs_[id].may_end; }
  bool must_end(ConfigId id) const { return configs_[id].may_end && configs_[id].n_frames == 0; }
  bool overflowed() const { return overflowed_; }
  uint64_t bytes() const;  // of memory, about

 private:
  struct Config {
    size_t first = 0;
    uint32_t n_frames = 0;
    bool may_end = false;
    uint32_t steps = kNone;  // [n_classes] from there in steps_; kNone: not yet
    ConfigId clamped = kNone;
    uint32_t clamped_at = 0;
    ConfigId closed = kNone;  // close_parent()
  };
  struct PairHash {
    size_t operator()(uint64_t pair) const { return pair * 0x9e3779b97f4a7c15ULL >> 7; }
  };

  ConfigId intern(std::span<const Frame> frames, bool may_end);
  ConfigId compute_step(ConfigId from, uint8_t byte);
  ConfigId close(const Frame& frame);
  ConfigId close_work();
  void enter(const Frame& frame);
  void expand(const Frame& frame);
  void call(RuleId rule, const Frame& back);
  void leave(ConfigId parent);
  void merge(std::vector<Frame>& frames);
  ConfigId unite(ConfigId a, ConfigId b);
  void rehash();

  const Automaton& automaton_;
  std::vector<Config> configs_;
  std::vector<Frame> frames_;
  std::vector<ConfigId> steps_;
  std::vector<ConfigId> table_;  // open addressing; kNone: free
  std::unordered_map<uint64_t, ConfigId, PairHash> unions_;
  bool overflowed_ = false;

  // While closing.
  std::vector<Frame> work_, seen_, leaves_;
  std::vector<uint32_t> seen_table_;
  bool ended_ = false;
};

}  // namespace assay::grammar
