#include "kernels/cpu_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "hardware/topology.h"
#include "kernels/work_split.h"

namespace assay {
namespace {

constexpr size_t kPartialBytes = 8 * kMiB;  // a context of 128k by splits, 32 heads of 128 values

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

Result<std::shared_ptr<CpuBackend>> CpuBackend::create(const KernelTable& table, ThreadPoolOptions threads,
                                                       Tuning tuning) {
  CHECK(!tuning.bf16_pairs || table.matmul_bf16_pairs != nullptr);
  std::shared_ptr<CpuBackend> backend(new CpuBackend(table, std::move(threads), tuning));
  ASSIGN_OR_RETURN(backend->partials_, AlignedBuffer::allocate(kPartialBytes));
  return backend;
}

std::string CpuBackend::name() const {
  return fmt::format("cpu {}, {} thread{}", assay::name(table_.isa), n_threads(),
                     n_threads() == 1 ? "" : "s");
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

MatmulKernel CpuBackend::kernel_for(const MatmulTask& task) const {
  const Format weights = task.weights->format, input = task.input.format;
  if (task.weights->is_sparse()) return table_.matmul_sparse[activation_index(input)];
  if (tuning_.bf16_pairs && weights == Format::kBF16 && input == Format::kBF16)
    return table_.matmul_bf16_pairs;
  return table_.matmul[static_cast<size_t>(weights)][activation_index(input)];
}

void CpuBackend::matmul(std::span<const MatmulTask> tasks) {
  int64_t all_tiles = 0, products = 0;
  for (const MatmulTask& task : tasks) {
    check_task(task);
    all_tiles += task.weights->n_tiles();
    products += task.weights->n_tiles() * kTileRows * task.weights->padded_inputs * task.input.n_rows;
  }
  int64_t n = 0;
  for (const MatmulTask& task : tasks) n += cut_matmul(task, all_tiles, pool_.size(), tuning_).n_blocks();
  run(n, products_cost(products), [&](int64_t i) {
    for (const MatmulTask& task : tasks) {
      const MatmulGrid grid = cut_matmul(task, all_tiles, pool_.size(), tuning_);
      if (i < grid.n_blocks()) {
        kernel_for(task)(task, grid.block(i));
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

void CpuBackend::add(float* x, const float* y, int64_t n) {
  constexpr int64_t kPerBlock = 16384;
  run(ceil_div(n, kPerBlock), values_cost(n), [&](int64_t i) {
    table_.add(x + i * kPerBlock, y + i * kPerBlock, std::min(kPerBlock, n - i * kPerBlock));
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

Result<std::shared_ptr<Backend>> make_cpu_backend(std::string_view isa, int n_threads, bool pin_threads) {
  constexpr int kMostThreads = 1024;
  if (n_threads < 0 || n_threads > kMostThreads) {
    return fail(ErrorCode::kInvalidArgument, "threads", "expected 0 (every CPU) to {}, found {}",
                kMostThreads, n_threads);
  }
  ASSIGN_OR_RETURN(const KernelTable* table, choose_table(isa));
  ThreadPoolOptions threads{.n_threads = n_threads};
  if (pin_threads) {
    ASSIGN_OR_RETURN(threads.pin_to, cpus_by_core());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend,
                   CpuBackend::create(*table, std::move(threads), tuning_for(*table)));
  return backend;
}

}  // namespace assay
