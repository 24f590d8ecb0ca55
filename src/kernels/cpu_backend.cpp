#include "kernels/cpu_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "kernels/work_split.h"

namespace assay {
namespace {

constexpr size_t kPartialBytes = 4 * kMiB;
constexpr int64_t kForkNanoseconds = 4000;
constexpr int64_t kQueryRowsPerBlock = 64;

// Rough single-thread costs, only to tell work that is worth a fork from work that is not.
constexpr int64_t values_cost(int64_t n) {
  return n / 4;
}
constexpr int64_t products_cost(int64_t n) {
  return n / 64;
}

// Codes of row `row` of a buffer shaped as `m`.
void convert_row(const KernelTable& table, const ActivationBuffer::Mutable& m, int64_t row, int64_t first,
                 int64_t n, const float* x) {
  const int64_t at = row * m.stride + first;
  switch (m.format) {
    case Format::kF32:
      std::memcpy(static_cast<float*>(m.values) + at, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case Format::kBF16:
      table.to_bf16(x, n, static_cast<uint16_t*>(m.values) + at);
      return;
    case Format::kInt8:
      table.quantise(x, n, static_cast<int8_t*>(m.values) + at, m.scales + at / kActivationGroup,
                     m.sums + at / (kActivationGroup / 2));
      return;
    case Format::kF16:
    case Format::kFp8E4M3:
    case Format::kFp8E5M2:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
}

// Rows are produced in pieces that stay in the nearest cache, padded with zeros, and converted at once.
constexpr int64_t kPiece = 512;
template <class Produce>
void convert_pieces(const KernelTable& table, const ActivationBuffer::Mutable& m, int64_t row,
                    Produce&& produce) {
  alignas(64) float piece[kPiece];
  for (int64_t at = 0; at < m.stride; at += kPiece) {
    const int64_t n = std::min(kPiece, m.n_cols - at);
    const int64_t padded = std::min(kPiece, m.stride - at);
    produce(at, n, piece);
    std::fill(piece + n, piece + padded, 0.0F);
    convert_row(table, m, row, at, padded, piece);
  }
}

void check_task(const MatmulTask& task) {
  CHECK(task.weights != nullptr);
  CHECK(activation_index(task.input.format) >= 0);
  CHECK_OP(task.input.n_cols, ==, task.weights->n_inputs);
  CHECK_OP(task.input.stride, >=, task.weights->padded_inputs);
  CHECK(task.input.n_rows == 0 || task.output != nullptr);
  CHECK(task.input.n_rows <= 1 || task.output_stride >= task.weights->n_outputs);
}

}  // namespace

Result<std::shared_ptr<CpuBackend>> CpuBackend::create(const KernelTable& table, int n_threads) {
  std::shared_ptr<CpuBackend> backend(new CpuBackend(table, n_threads));
  ASSIGN_OR_RETURN(backend->partials_, AlignedBuffer::allocate(kPartialBytes));
  return backend;
}

std::string CpuBackend::name() const {
  return fmt::format("cpu {}, {} thread{}", assay::name(table_.isa), n_threads(),
                     n_threads() == 1 ? "" : "s");
}

template <class Body>
void CpuBackend::run(int64_t n, int64_t total_cost, Body&& body) {
  if (total_cost < kForkNanoseconds) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  pool_.parallel_for(n, body);
}

void CpuBackend::embed(const PackedMatrix& table, std::span<const int32_t> tokens, float* y) {
  const auto n = static_cast<int64_t>(tokens.size());
  run(n, values_cost(8 * n * table.n_inputs), [&](int64_t i) {
    unpack_row(table, tokens[static_cast<size_t>(i)],
               {y + i * table.n_inputs, static_cast<size_t>(table.n_inputs)});
  });
}

void CpuBackend::rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t n_cols, float eps,
                          float* y) {
  run(n_rows, values_cost(n_rows * n_cols), [&](int64_t r) {
    const float* row = x + r * n_cols;
    table_.scale_by(row, table_.rms_scale(row, n_cols, eps), weight, n_cols, y + r * n_cols);
  });
}

ActivationView CpuBackend::prepare(Format format, const float* x, int64_t n_rows, int64_t n_cols,
                                   ActivationBuffer& out) {
  const ActivationBuffer::Mutable m = out.shape_as(format, n_rows, n_cols);
  run(n_rows, values_cost(n_rows * n_cols), [&](int64_t r) {
    convert_pieces(table_, m, r, [&](int64_t at, int64_t n, float* piece) {
      std::memcpy(piece, x + r * n_cols + at, static_cast<size_t>(n) * sizeof(float));
    });
  });
  return out.view();
}

ActivationView CpuBackend::rms_norm_prepare(Format format, const float* x, const float* weight,
                                            int64_t n_rows, int64_t n_cols, float eps,
                                            ActivationBuffer& out) {
  const ActivationBuffer::Mutable m = out.shape_as(format, n_rows, n_cols);
  run(n_rows, values_cost(n_rows * n_cols), [&](int64_t r) {
    const float* row = x + r * n_cols;
    const float factor = table_.rms_scale(row, n_cols, eps);
    convert_pieces(table_, m, r, [&](int64_t at, int64_t n, float* piece) {
      table_.scale_by(row + at, factor, weight + at, n, piece);
    });
  });
  return out.view();
}

ActivationView CpuBackend::gate_prepare(Format format, GateFunction function, const float* gate,
                                        const float* up, int64_t row_stride, int64_t n_rows, int64_t n_cols,
                                        ActivationBuffer& out) {
  const ActivationBuffer::Mutable m = out.shape_as(format, n_rows, n_cols);
  run(n_rows, values_cost(2 * n_rows * n_cols), [&](int64_t r) {
    convert_pieces(table_, m, r, [&](int64_t at, int64_t n, float* piece) {
      table_.gate(function, gate + r * row_stride + at, up + r * row_stride + at, n, piece);
    });
  });
  return out.view();
}

void CpuBackend::matmul(std::span<const MatmulTask> tasks) {
  int64_t all_tiles = 0, products = 0;
  for (const MatmulTask& task : tasks) {
    check_task(task);
    all_tiles += task.weights->n_tiles();
    products += task.weights->n_tiles() * kTileRows * task.weights->padded_inputs * task.input.n_rows;
  }
  int64_t n = 0;
  for (const MatmulTask& task : tasks) n += cut_matmul(task, all_tiles, pool_.size()).n_blocks();
  run(n, products_cost(products), [&](int64_t i) {
    for (const MatmulTask& task : tasks) {
      const MatmulGrid grid = cut_matmul(task, all_tiles, pool_.size());
      if (i < grid.n_blocks()) {
        const auto weights = static_cast<size_t>(task.weights->format);
        table_.matmul[weights][activation_index(task.input.format)](task, grid.block(i));
        return;
      }
      i -= grid.n_blocks();
    }
  });
}

void CpuBackend::rope(float* x, int64_t n_rows, int64_t row_stride, int n_heads, int head_dim, int n_pairs,
                      const float* cosines, const float* sines, RopeStyle style) {
  CHECK(n_pairs >= 0 && 2 * n_pairs <= head_dim);
  run(n_rows, values_cost(n_rows * n_heads * head_dim), [&](int64_t r) {
    table_.rope(x + r * row_stride, n_heads, head_dim, n_pairs, cosines + r * n_pairs, sines + r * n_pairs,
                style);
  });
}

void CpuBackend::store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride,
                          int n_rows, int first_position) {
  const int64_t width = int64_t{kv.n_kv_heads} * kv.head_dim;
  run(n_rows, values_cost(2 * n_rows * width), [&](int64_t r) {
    const int position = first_position + static_cast<int>(r);
    std::byte* block = kv.base + static_cast<size_t>(kv.blocks[position / kv.page_tokens]) * kv.block_bytes;
    for (const bool is_key : {true, false}) {
      const Format format = is_key ? kv.key_format : kv.value_format;
      std::byte* plane = block + (is_key ? kv.key_offset : kv.value_offset);
      auto* scales = reinterpret_cast<float*>(plane + width * kv.page_tokens);  // int8: one byte a value
      for (int h = 0; h < kv.n_kv_heads; ++h) {
        const int64_t slot = int64_t{h} * kv.page_tokens + position % kv.page_tokens;
        const float* x = (is_key ? keys : values) + r * row_stride + int64_t{h} * kv.head_dim;
        table_.store_head(format, x, kv.head_dim, plane + slot * kv.head_dim * bits(format) / 8,
                          format == Format::kInt8 ? scales + slot : nullptr);
      }
    }
  });
}

void CpuBackend::add(float* x, const float* y, int64_t n) {
  constexpr int64_t kPerBlock = 16384;
  run(ceil_div(n, kPerBlock), values_cost(n), [&](int64_t i) {
    table_.add(x + i * kPerBlock, y + i * kPerBlock, std::min(kPerBlock, n - i * kPerBlock));
  });
}

namespace {

void check_attention(const AttentionShape& shape, const AttentionTask& task) {
  CHECK(shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0);
  CHECK(shape.head_dim > 0 && shape.head_dim <= kMaxHeadDim);
  CHECK_OP(task.kv.head_dim, ==, shape.head_dim);
  CHECK_OP(task.kv.n_kv_heads, ==, shape.n_kv_heads);
  CHECK(task.n_queries >= 0 && task.first_position >= 0 && task.kv.page_tokens > 0);
}

// First split that any query of the task sees, and how many follow.
struct SplitRange {
  int first = 0, n = 0;
};
SplitRange splits_of(const AttentionShape& shape, const AttentionTask& task) {
  if (task.n_queries == 0) return {};
  const int first = task.first_position;
  const int oldest = shape.window > 0 ? std::max(0, first - shape.window + 1) : 0;
  const int newest = first + task.n_queries - 1;
  return {oldest / kKeySplit, newest / kKeySplit - oldest / kKeySplit + 1};
}

}  // namespace

// Few queries over long contexts: one item per task, KV head and split, then a merge. False when there is no
// gain or no room for the partials; attention() then computes the same bits without.
bool CpuBackend::attend_by_splits(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  const int64_t sharers = shape.n_heads / shape.n_kv_heads;
  int64_t items = 0, floats = 0, most_splits = 0, blocks = 0;
  for (const AttentionTask& task : tasks) {
    if (task.n_queries * sharers > kQueryRowsPerBlock) return false;
    const int64_t n = splits_of(shape, task).n;
    most_splits = std::max(most_splits, n);
    items += n * shape.n_kv_heads;
    blocks += shape.n_kv_heads;
    floats += n * shape.n_kv_heads * task.n_queries * sharers * partial_stride(shape.head_dim);
  }
  if (most_splits < 2 || pool_.size() == 1 || blocks >= 4 * pool_.size()) return false;
  if (static_cast<size_t>(floats) * sizeof(float) > partials_.size()) return false;

  // Finds item i: partials of a task lie [kv_head][split][rows].
  const auto locate = [&](int64_t i, bool by_split, auto&& visit) {
    float* partials = partials_.as<float>();
    for (const AttentionTask& task : tasks) {
      const SplitRange splits = splits_of(shape, task);
      const int64_t per_head = by_split ? splits.n : (splits.n > 0 ? 1 : 0);
      const int64_t stride = task.n_queries * sharers * partial_stride(shape.head_dim);
      if (i < per_head * shape.n_kv_heads) {
        const int64_t head = i / per_head, split = i % per_head;
        visit(task, AttentionBlock{static_cast<int>(head), 0, task.n_queries}, splits, split,
              partials + (head * splits.n + split) * stride, stride);
        return;
      }
      i -= per_head * shape.n_kv_heads;
      partials += splits.n * shape.n_kv_heads * stride;
    }
  };
  pool_.parallel_for(items, [&](int64_t i) {
    locate(i, true,
           [&](const AttentionTask& task, const AttentionBlock& block, SplitRange splits, int64_t split,
               float* partials, int64_t) {
             table_.attention_split(shape, task, block, splits.first + static_cast<int>(split), partials);
           });
  });
  for (int64_t i = 0; i < blocks; ++i) {
    locate(i, false,
           [&](const AttentionTask& task, const AttentionBlock& block, SplitRange splits, int64_t,
               float* partials,
               int64_t stride) { table_.attention_merge(shape, task, block, partials, stride, splits.n); });
  }
  return true;
}

void CpuBackend::attention(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  for (const AttentionTask& task : tasks) check_attention(shape, task);
  if (attend_by_splits(shape, tasks)) return;
  const int sharers = shape.n_heads / shape.n_kv_heads;
  const auto queries_per_block = static_cast<int>(std::max<int64_t>(1, kQueryRowsPerBlock / sharers));
  int64_t n = 0, products = 0;
  for (const AttentionTask& task : tasks) {
    n += ceil_div(task.n_queries, queries_per_block) * shape.n_kv_heads;
    products +=
        int64_t{2} * task.n_queries * (task.first_position + task.n_queries) * shape.n_heads * shape.head_dim;
  }
  run(n, products_cost(4 * products), [&](int64_t i) {
    for (const AttentionTask& task : tasks) {
      const int64_t query_blocks = ceil_div(task.n_queries, queries_per_block);
      if (i < query_blocks * shape.n_kv_heads) {
        // The last queries see the most keys: they go first, so that no thread is left with them at the end.
        const auto block = static_cast<int>(query_blocks - 1 - i / shape.n_kv_heads);
        const int first = block * queries_per_block;
        table_.attention(shape, task,
                         {.kv_head = static_cast<int>(i % shape.n_kv_heads),
                          .first_query = first,
                          .n_queries = std::min(queries_per_block, task.n_queries - first)});
        return;
      }
      i -= query_blocks * shape.n_kv_heads;
    }
  });
}

namespace {

// The strongest table that this build and CPU have.
const KernelTable& best_table() {
  for (int isa = static_cast<int>(best_isa(read_cpu().features)); isa > 0; --isa) {
    if (const KernelTable* table = kernel_table(static_cast<Isa>(isa))) return *table;
  }
  return *kernel_table(Isa::kPortable);
}

Result<const KernelTable*> choose_table(std::string_view isa) {
  std::string_view where = "instruction set";
  if (isa == "auto") {
    const char* forced = std::getenv("ASSAY_ISA");
    if (forced == nullptr || *forced == '\0' || std::string_view(forced) == "auto") return &best_table();
    isa = forced;
    where = "ASSAY_ISA";
  }
  Result<Isa> parsed = parse_isa(isa);
  if (!parsed) return std::unexpected(parsed.error().within(where));
  const KernelTable* table = kernel_table(*parsed);
  if (table == nullptr) {
    return fail(ErrorCode::kUnsupported, where, "this CPU or build cannot run {}; the best it has is {}", isa,
                name(best_table().isa));
  }
  return table;
}

}  // namespace

Result<std::shared_ptr<Backend>> make_cpu_backend(std::string_view isa, int n_threads) {
  constexpr int kMostThreads = 1024;
  if (n_threads < 0 || n_threads > kMostThreads) {
    return fail(ErrorCode::kInvalidArgument, "threads", "expected 0 (every CPU) to {}, found {}",
                kMostThreads, n_threads);
  }
  ASSIGN_OR_RETURN(const KernelTable* table, choose_table(isa));
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend, CpuBackend::create(*table, n_threads));
  return backend;
}

}  // namespace assay
