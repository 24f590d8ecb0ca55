// Two conversations share a system prompt: the second one finds the pages that the first has computed.
#include <fmt/core.h>

#include <numeric>
#include <vector>

#include "base/units.h"
#include "kvcache/prefix_index.h"

int main() {
  using namespace assay;
  const KvLayout layout{.n_layers = 30,
                        .n_kv_heads = 3,
                        .head_dim = 64,
                        .page_tokens = 16,
                        .key_format = Format::kBF16,
                        .value_format = Format::kInt8};
  auto pool = KvPool::create(layout, 64);
  if (!pool) {
    fmt::print(stderr, "{}\n", pool.error().message());
    return 1;
  }
  fmt::print("{} pages of {} tokens, {} in all, {:.0f} bytes a token\n", pool->n_blocks(), layout.page_tokens,
             format_bytes(static_cast<uint64_t>(pool->n_blocks()) * layout.block_bytes()),
             layout.bytes_per_token());

  PrefixIndex index(*pool);
  std::vector<int32_t> prompt(100);  // tokens 0..99; both conversations agree on the first 80
  std::iota(prompt.begin(), prompt.end(), 0);
  {
    PageTable first(*pool);
    if (!first.grow(100)) return 1;
    index.insert(prompt, first);  // once its keys and values are computed
  }
  for (size_t i = 80; i < prompt.size(); ++i) prompt[i] += 1000;
  PageTable second(*pool);
  second.adopt(index.match(prompt));
  const int64_t found = second.n_positions();
  if (!second.grow(100)) return 1;
  fmt::print("second conversation: {} of {} tokens found, {} new pages; {} pages idle, {} free\n", found,
             prompt.size(), second.blocks().size() - static_cast<size_t>(found / layout.page_tokens),
             pool->n_idle(), pool->n_free());
  return found == 80 ? 0 : 1;
}
