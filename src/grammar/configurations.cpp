#include "grammar/configurations.h"

#include <algorithm>
#include <tuple>

namespace assay::grammar {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

uint64_t hash_of(const Frame& frame, uint64_t hash = 0) {
  hash = mix(hash, (uint64_t{frame.state} << 32) | frame.parent);
  return mix(hash, (uint64_t{frame.min} << 32) | frame.max);
}

uint64_t hash_of(std::span<const Frame> frames, bool may_end) {
  uint64_t hash = may_end ? 1 : 2;
  for (const Frame& frame : frames) hash = hash_of(frame, hash);
  return hash;
}

auto key_of(const Frame& frame) {
  return std::tuple(frame.state, frame.min, frame.max);
}

uint32_t one_less(uint32_t count) {
  return count == 0 || count == kUnbounded ? count : count - 1;
}

}  // namespace

Configurations::Configurations(const Automaton& automaton) : automaton_(automaton), table_(1024, kNone) {
  intern({}, false);  // kDead
  intern({}, true);   // kEnded
}

uint64_t Configurations::bytes() const {
  return configs_.size() * (sizeof(Config) + 8) + frames_.size() * sizeof(Frame) +
         steps_.size() * sizeof(ConfigId) + unions_.size() * 32;
}

void Configurations::rehash() {
  table_.assign(table_.size() * 2, kNone);
  for (ConfigId id = 0; id < configs_.size(); ++id) {
    size_t slot = hash_of(frames(id), configs_[id].may_end) & (table_.size() - 1);
    while (table_[slot] != kNone) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = id;
  }
}

ConfigId Configurations::intern(std::span<const Frame> wanted, bool may_end) {
  size_t slot = hash_of(wanted, may_end) & (table_.size() - 1);
  for (; table_[slot] != kNone; slot = (slot + 1) & (table_.size() - 1)) {
    const ConfigId id = table_[slot];
    if (configs_[id].may_end == may_end && std::ranges::equal(frames(id), wanted)) return id;
  }
  const auto id = static_cast<ConfigId>(configs_.size());
  table_[slot] = id;
  configs_.push_back(
      {.first = frames_.size(), .n_frames = static_cast<uint32_t>(wanted.size()), .may_end = may_end});
  frames_.insert(frames_.end(), wanted.begin(), wanted.end());
  if (configs_.size() * 2 > table_.size()) rehash();
  return id;
}

ConfigId Configurations::start() {
  const Rule& root = automaton_.rule(automaton_.root());
  return close({root.start, root.min, root.max, kEnded});
}

ConfigId Configurations::close(const Frame& frame) {
  enter(frame);
  return close_work();
}

ConfigId Configurations::close_parent(ConfigId parent) {
  if (configs_[parent].closed == kNone) {
    leave(parent);
    const ConfigId closed = close_work();
    configs_[parent].closed = closed;
  }
  return configs_[parent].closed;
}

ConfigId Configurations::step(ConfigId from, uint8_t byte) {
  uint32_t steps = configs_[from].steps;
  if (steps == kNone) {
    steps = static_cast<uint32_t>(steps_.size());
    configs_[from].steps = steps;
    steps_.resize(steps_.size() + automaton_.n_classes(), kNone);
  }
  const size_t at = size_t{steps} + automaton_.class_of(byte);
  if (steps_[at] == kNone) {
    const ConfigId next = compute_step(from, byte);
    steps_[at] = next;
  }
  return steps_[at];
}

ConfigId Configurations::compute_step(ConfigId from, uint8_t byte) {
  for (const Frame& frame : frames(from)) {
    for (const ByteEdge& edge : automaton_.edges(frame.state))
      if (edge.low <= byte && byte <= edge.high) enter({edge.target, 0, 0, frame.parent});
  }
  return close_work();
}

// --- closure: follow jumps, calls and returns until only frames that wait for a byte are left ---

void Configurations::enter(const Frame& frame) {
  if (seen_.size() >= kMaxFrames) {
    overflowed_ = true;
    return;
  }
  constexpr size_t kFew = 16;
  if (seen_.size() < kFew) {
    if (std::ranges::find(seen_, frame) != seen_.end()) return;
  } else {
    if (seen_table_.size() < seen_.size() * 4) {
      seen_table_.assign(std::max<size_t>(64, seen_.size() * 8), kNone);
      for (uint32_t i = 0; i < seen_.size(); ++i) {
        size_t slot = hash_of(seen_[i]) % seen_table_.size();
        while (seen_table_[slot] != kNone) slot = (slot + 1) % seen_table_.size();
        seen_table_[slot] = i;
      }
    }
    size_t slot = hash_of(frame) % seen_table_.size();
    for (; seen_table_[slot] != kNone; slot = (slot + 1) % seen_table_.size())
      if (seen_[seen_table_[slot]] == frame) return;
    seen_table_[slot] = static_cast<uint32_t>(seen_.size());
  }
  seen_.push_back(frame);
  work_.push_back(frame);
}

void Configurations::leave(ConfigId parent) {
  ended_ = ended_ || configs_[parent].may_end;
  for (size_t i = 0; i < configs_[parent].n_frames; ++i) enter(frames_[configs_[parent].first + i]);
}

void Configurations::call(RuleId rule, const Frame& back) {
  const Automaton::State& state = automaton_.state(back.state);
  const bool returns_at_once = state.tail || (state.repeated != kNone && back.max == 0);
  const ConfigId parent = returns_at_once ? back.parent : intern({&back, 1}, false);
  const Rule& callee = automaton_.rule(rule);
  enter({callee.start, callee.min, callee.max, parent});
}

void Configurations::expand(const Frame& frame) {
  const Automaton::State& state = automaton_.state(frame.state);
  if (state.repeated != kNone) {
    if (frame.max > 0)
      call(state.repeated, {frame.state, one_less(frame.min), one_less(frame.max), frame.parent});
    if (frame.min == 0) leave(frame.parent);
    return;
  }
  if (state.final) leave(frame.parent);
  for (const StateId target : automaton_.jumps(frame.state)) enter({target, 0, 0, frame.parent});
  for (const CallEdge& edge : automaton_.calls(frame.state)) call(edge.rule, {edge.next, 0, 0, frame.parent});
  if (!automaton_.edges(frame.state).empty()) leaves_.push_back(frame);
}

ConfigId Configurations::close_work() {
  while (!work_.empty()) {
    const Frame frame = work_.back();
    work_.pop_back();
    expand(frame);
  }
  merge(leaves_);
  const ConfigId id = overflowed_ ? kDead : intern(leaves_, ended_);
  seen_.clear();
  seen_table_.clear();
  leaves_.clear();
  ended_ = false;
  return id;
}

// Sorts, and makes one frame of those that differ in their parents alone.
void Configurations::merge(std::vector<Frame>& frames) {
  std::ranges::sort(frames, {}, key_of);
  size_t kept = 0;
  for (const Frame& frame : frames) {
    if (kept > 0 && key_of(frames[kept - 1]) == key_of(frame)) {
      frames[kept - 1].parent = unite(frames[kept - 1].parent, frame.parent);
    } else {
      frames[kept++] = frame;
    }
  }
  frames.resize(kept);
}

// All stacks of both. The depth of the recursion is that of the stacks, which the grammar's nesting bounds.
ConfigId Configurations::unite(ConfigId a, ConfigId b) {
  if (a == b) return a;
  const uint64_t pair = (uint64_t{std::min(a, b)} << 32) | std::max(a, b);
  if (const auto known = unions_.find(pair); known != unions_.end()) return known->second;
  std::vector<Frame> all(frames(a).begin(), frames(a).end());
  all.insert(all.end(), frames(b).begin(), frames(b).end());
  merge(all);
  const ConfigId id = intern(all, configs_[a].may_end || configs_[b].may_end);
  unions_.emplace(pair, id);
  return id;
}

ConfigId Configurations::clamp(ConfigId id, uint32_t limit) {
  if (configs_[id].clamped != kNone && configs_[id].clamped_at == limit) return configs_[id].clamped;
  std::vector<Frame> lowered(frames(id).begin(), frames(id).end());
  for (Frame& frame : lowered) {
    frame.min = std::min(frame.min, limit);
    if (frame.max != kUnbounded && frame.max >= limit) frame.max = kUnbounded;
    frame.parent = clamp(frame.parent, limit);
  }
  merge(lowered);  // those that differed in their counts alone may have become equal
  const ConfigId result = intern(lowered, configs_[id].may_end);
  configs_[id].clamped = result;
  configs_[id].clamped_at = limit;
  return result;
}

ConfigId Configurations::import(const Configurations& from, ConfigId id) {
  if (id <= kEnded) return id;
  std::vector<Frame> own(from.frames(id).begin(), from.frames(id).end());
  for (Frame& frame : own) frame.parent = import(from, frame.parent);
  return intern(own, from.may_end(id));
}

}  // namespace assay::grammar
