// The KV cache's memory: a fixed budget of blocks (pages), each holding `page_tokens` positions of every
// layer, reference counted so that sequences can share a prefix. Knows block ids and token spans, never
// requests. The layout inside a block is kernels/kv_view.h.
//
// Memory is allocated whole at creation; allocate() never asks the system for more. Thread safety: one thread
// (the step loop); n_free() and n_idle() may be read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "kernels/kv_view.h"
#include "numeric/format.h"

namespace assay {

struct KvLayout {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 16;
  Format key_format = Format::kF32;
  Format value_format = Format::kF32;

  size_t block_bytes() const;  // all layers, keys and values
  double bytes_per_token() const { return static_cast<double>(block_bytes()) / page_tokens; }
};

class KvPool {
 public:
  // kResourceExhausted, with the sum in the message, when the memory cannot be had; kInvalidArgument for zero
  // blocks or an empty shape. Every format can be held.
  static Result<KvPool> create(const KvLayout& layout, int64_t n_blocks);

  KvPool(KvPool&&) noexcept;
  KvPool& operator=(KvPool&&) noexcept;
  ~KvPool();

  const KvLayout& layout() const;
  int64_t n_blocks() const;
  int64_t n_free() const;

  std::optional<int32_t> allocate();  // reference count 1
  void retain(int32_t block);
  void release(int32_t block);  // back to the free list at zero
  int reference_count(int32_t block) const;

  // A kept block is one that a cache holds a reference to; it is idle while nobody else does. Counting them
  // here makes the question "how many pages could be had back?" free.
  void set_kept(int32_t block, bool kept);
  bool is_kept(int32_t block) const;
  int64_t n_kept() const;
  int64_t n_idle() const;

  // The whole of a block, [layout().block_bytes()]; to be copied, not understood.
  std::span<std::byte> block_memory(int32_t block);
  std::span<const std::byte> block_memory(int32_t block) const;

  // One layer of the sequence whose pages are `blocks`; valid while the span and the pool live.
  KvView view(int layer, std::span<const int32_t> blocks) const;

 private:
  struct State;
  explicit KvPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay
