// The CPU backend: cuts each operation of a step into blocks and runs a KernelTable over a thread pool. Work
// that takes less than a fork and join stays on the calling thread. See backend.h for the contract.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/aligned.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/kernel_table.h"
#include "kernels/tuning.h"

namespace assay {

class CpuBackend final : public Backend {
 public:
  // kResourceExhausted when the workspace (8 MiB) cannot be had.
  static Result<std::shared_ptr<CpuBackend>> create(const KernelTable& table, ThreadPoolOptions threads,
                                                    Tuning tuning = {});

  std::string name() const override;
  int n_threads() const override { return pool_.size(); }
  // Fork-joins so far; what a step costs beside its arithmetic.
  int64_t forks() const { return pool_.forks(); }
  Communicator& communicator() override { return communicator_; }

  void embed(const PackedMatrix& table, std::span<const int32_t> tokens, float* y) override;
  void rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t n_cols, float eps,
                float* y) override;
  ActivationView prepare(Format format, const float* x, int64_t n_rows, int64_t n_cols,
                         ActivationBuffer& out) override;
  ActivationView rms_norm_prepare(Format format, const float* x, const float* weight, int64_t n_rows,
                                  int64_t n_cols, float eps, ActivationBuffer& out) override;
  void matmul(std::span<const MatmulTask> tasks) override;
  void rope(float* x, int64_t n_rows, int64_t row_stride, int n_heads, int head_dim, int n_pairs,
            const float* cosines, const float* sines, RopeStyle style) override;
  void store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride, int n_rows,
                int first_position) override;
  void attention(const AttentionShape& shape, std::span<const AttentionTask> tasks) override;
  ActivationView gate_prepare(Format format, GateFunction function, const float* gate, const float* up,
                              int64_t row_stride, int64_t n_rows, int64_t n_cols,
                              ActivationBuffer& out) override;
  void add(float* x, const float* y, int64_t n) override;

 private:
  CpuBackend(const KernelTable& table, ThreadPoolOptions threads, Tuning tuning)
      : table_(table), tuning_(tuning), pool_(std::move(threads)) {}
  MatmulKernel kernel_for(const MatmulTask& task) const;

  // body(i) for i in [0, n): on all threads when the whole takes about `total_cost` nanoseconds or more than
  // it costs to wake them.
  template <class Body>
  void run(int64_t n, int64_t total_cost, Body&& body) {
    constexpr int64_t kForkNanoseconds = 4000;
    if (total_cost < kForkNanoseconds) {
      for (int64_t i = 0; i < n; ++i) body(i);
      return;
    }
    pool_.parallel_for(n, body);
  }
  // Rough single-thread costs in nanoseconds, only to tell work that is worth a fork from work that is not.
  static constexpr int64_t values_cost(int64_t n) { return n / 4; }
  static constexpr int64_t products_cost(int64_t n) { return n / 64; }
  void attend_by_splits(const AttentionShape& shape, std::span<const AttentionTask> tasks);
  void attend_whole(const AttentionShape& shape, std::span<const AttentionTask> tasks);

  const KernelTable& table_;
  const Tuning tuning_;
  ThreadPool pool_;
  Communicator communicator_;
  AlignedBuffer partials_;  // of attention by splits
};

}  // namespace assay
