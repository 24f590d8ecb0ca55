#include "kvcache/kv_pool.h"

#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/units.h"

namespace assay {
namespace {

constexpr std::string_view kWhere = "KV cache";

size_t key_bytes(const KvLayout& layout) {
  return kv_plane_bytes(layout.key_format, layout.n_kv_heads, layout.page_tokens, layout.head_dim);
}

size_t value_bytes(const KvLayout& layout) {
  return kv_plane_bytes(layout.value_format, layout.n_kv_heads, layout.page_tokens, layout.head_dim);
}

constexpr int kLargestDimension = 1 << 16;
// Values of one page; keeps every product of block_bytes() far from overflow.
constexpr double kLargestPage = 1LL << 48;

Result<void> check_layout(const KvLayout& layout) {
  const auto in_range = [](int value) { return value > 0 && value <= kLargestDimension; };
  if (!in_range(layout.n_layers) || !in_range(layout.n_kv_heads) || !in_range(layout.head_dim) ||
      !in_range(layout.page_tokens)) {
    return fail(ErrorCode::kInvalidArgument, kWhere,
                "expected every dimension in 1..{}, found {} layers, {} heads of {} values, {} tokens a page",
                kLargestDimension, layout.n_layers, layout.n_kv_heads, layout.head_dim, layout.page_tokens);
  }
  const double values =
      double{1} * layout.n_layers * layout.n_kv_heads * layout.page_tokens * layout.head_dim;
  if (values > kLargestPage) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "a page of {:.3g} values is beyond the limit of {:.3g}",
                values, kLargestPage);
  }
  return {};
}

}  // namespace

size_t KvLayout::block_bytes() const {
  return static_cast<size_t>(n_layers) * (key_bytes(*this) + value_bytes(*this));
}

struct KvPool::State {
  KvLayout layout;
  size_t block_bytes = 0;
  size_t key_plane_bytes = 0;
  size_t layer_bytes = 0;
  AlignedBuffer memory;         // [n_blocks, block_bytes]
  std::vector<int32_t> free;    // a stack: the page freed last is the one most likely still in a cache
  std::vector<int32_t> counts;  // [n_blocks]
  std::vector<bool> kept;       // [n_blocks]
  int64_t n_kept = 0;
  // Mirrors for readers on other threads; the step loop is the only writer.
  std::atomic<int64_t> n_free{0};
  std::atomic<int64_t> n_idle{0};

  void check_held(int32_t block) const {
    CHECK(block >= 0 && static_cast<size_t>(block) < counts.size());
    CHECK(counts[static_cast<size_t>(block)] > 0);
  }
  void add_idle(int64_t change) { n_idle.store(n_idle.load(std::memory_order_relaxed) + change); }
};

KvPool::KvPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
KvPool::KvPool(KvPool&&) noexcept = default;
KvPool& KvPool::operator=(KvPool&&) noexcept = default;
KvPool::~KvPool() = default;

Result<KvPool> KvPool::create(const KvLayout& layout, int64_t n_blocks) {
  RETURN_IF_ERROR(check_layout(layout));
  if (n_blocks <= 0 || n_blocks > std::numeric_limits<int32_t>::max()) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "expected 1..{} pages, found {}",
                std::numeric_limits<int32_t>::max(), n_blocks);
  }
  const size_t block_bytes = layout.block_bytes();
  const auto sum = [&] {
    return fmt::format("{} pages of {} tokens at {} each", n_blocks, layout.page_tokens,
                       format_bytes(block_bytes));
  };
  size_t total = 0;
  if (__builtin_mul_overflow(block_bytes, static_cast<size_t>(n_blocks), &total)) {
    return fail(ErrorCode::kResourceExhausted, kWhere, "{} are more bytes than can be addressed", sum());
  }
  // Asked first, because a system that overcommits grants the memory and kills the process when it is
  // touched.
  if (const uint64_t available = available_memory_bytes(); total > available) {
    return fail(ErrorCode::kResourceExhausted, kWhere, "{} need {}, but {} are available", sum(),
                format_bytes(total), format_bytes(available));
  }
  auto memory = AlignedBuffer::allocate(total);
  if (!memory) {
    return fail(ErrorCode::kResourceExhausted, kWhere, "{} need {}, which the system refused", sum(),
                format_bytes(total));
  }
  auto state = std::make_unique<State>();
  state->layout = layout;
  state->block_bytes = block_bytes;
  state->key_plane_bytes = key_bytes(layout);
  state->layer_bytes = key_bytes(layout) + value_bytes(layout);
  state->memory = std::move(*memory);
  state->counts.assign(static_cast<size_t>(n_blocks), 0);
  state->kept.assign(static_cast<size_t>(n_blocks), false);
  state->free.reserve(static_cast<size_t>(n_blocks));
  for (int64_t block = n_blocks; block-- > 0;) state->free.push_back(static_cast<int32_t>(block));
  state->n_free.store(n_blocks);
  return KvPool(std::move(state));
}

const KvLayout& KvPool::layout() const {
  return state_->layout;
}
int64_t KvPool::n_blocks() const {
  return static_cast<int64_t>(state_->counts.size());
}
int64_t KvPool::n_free() const {
  return state_->n_free.load();
}

std::optional<int32_t> KvPool::allocate() {
  State& state = *state_;
  if (state.free.empty()) return std::nullopt;
  const int32_t block = state.free.back();
  state.free.pop_back();
  state.n_free.store(static_cast<int64_t>(state.free.size()));
  int32_t& count = state.counts[static_cast<size_t>(block)];
  CHECK_OP(count, ==, 0);
  count = 1;
  return block;
}

void KvPool::retain(int32_t block) {
  State& state = *state_;
  state.check_held(block);
  const auto index = static_cast<size_t>(block);
  if (state.kept[index] && state.counts[index] == 1) state.add_idle(-1);
  ++state.counts[index];
}

void KvPool::release(int32_t block) {
  State& state = *state_;
  state.check_held(block);
  const auto index = static_cast<size_t>(block);
  const int32_t left = --state.counts[index];
  if (state.kept[index]) {
    CHECK_OP(left, >, 0);  // the cache clears the mark before it lets go
    if (left == 1) state.add_idle(1);
  }
  if (left == 0) {
    state.free.push_back(block);
    state.n_free.store(static_cast<int64_t>(state.free.size()));
  }
}

int KvPool::reference_count(int32_t block) const {
  CHECK(block >= 0 && static_cast<size_t>(block) < state_->counts.size());
  return state_->counts[static_cast<size_t>(block)];
}

void KvPool::set_kept(int32_t block, bool kept) {
  State& state = *state_;
  state.check_held(block);
  const auto index = static_cast<size_t>(block);
  CHECK(state.kept[index] != kept);
  state.kept[index] = kept;
  state.n_kept += kept ? 1 : -1;
  if (state.counts[index] == 1) state.add_idle(kept ? 1 : -1);
}

bool KvPool::is_kept(int32_t block) const {
  CHECK(block >= 0 && static_cast<size_t>(block) < state_->kept.size());
  return state_->kept[static_cast<size_t>(block)];
}
int64_t KvPool::n_kept() const {
  return state_->n_kept;
}
int64_t KvPool::n_idle() const {
  return state_->n_idle.load();
}

std::span<std::byte> KvPool::block_memory(int32_t block) {
  state_->check_held(block);
  return {state_->memory.data() + static_cast<size_t>(block) * state_->block_bytes, state_->block_bytes};
}
std::span<const std::byte> KvPool::block_memory(int32_t block) const {
  return const_cast<KvPool*>(this)->block_memory(block);
}

KvView KvPool::view(int layer, std::span<const int32_t> blocks) const {
  const State& state = *state_;
  CHECK(layer >= 0 && layer < state.layout.n_layers);
  KvView view;
  view.base =
      const_cast<std::byte*>(state.memory.data());  // a view is written through; the pool's books are not
  view.blocks = blocks.data();
  view.block_bytes = state.block_bytes;
  view.key_offset = static_cast<size_t>(layer) * state.layer_bytes;
  view.value_offset = view.key_offset + state.key_plane_bytes;
  view.key_format = state.layout.key_format;
  view.value_format = state.layout.value_format;
  view.page_tokens = state.layout.page_tokens;
  view.n_kv_heads = state.layout.n_kv_heads;
  view.head_dim = state.layout.head_dim;
  return view;
}

}  // namespace assay
