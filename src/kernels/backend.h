// The seam between the model and the machine: the operations of one step. The forward pass is written once
// against this; CpuBackend runs a KernelTable over a thread pool. A step allocates nothing.
//
// All buffers are f32, row-major, in memory that the backend can reach; shapes are in each comment. Every
// output element is accumulated in one order that depends neither on the other rows of the batch nor on the
// number of threads. Failure: none; shapes are CHECKed. Thread safety: one step at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernels/activations.h"
#include "kernels/kv_view.h"
#include "kernels/packed_matrix.h"

namespace assay {

struct MatmulTask {
  const PackedMatrix* weights = nullptr;
  ActivationView input;     // [n_rows, n_inputs]
  float* output = nullptr;  // [n_rows, n_outputs]
  int64_t output_stride = 0;
  bool accumulate = false;      // output += instead of =
  const float* bias = nullptr;  // [n_outputs] or null; added after the product
};

enum class RopeStyle { kAdjacentPairs, kHalves };

struct AttentionShape {
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  float scale = 0;     // usually 1 / sqrt(head_dim)
  int window = 0;      // sliding window in positions; 0: none
  float soft_cap = 0;  // 0: none
};

// Queries at positions first_position .. first_position + n_queries - 1 of one sequence; each sees the keys
// at positions <= its own, which are already stored in `kv`.
struct AttentionTask {
  const float* queries = nullptr;  // [n_queries, n_heads * head_dim], rows `query_stride` apart
  int64_t query_stride = 0;
  float* output = nullptr;  // same shape
  int64_t output_stride = 0;
  int n_queries = 0;
  int first_position = 0;
  KvView kv;
};

enum class GateFunction { kSilu, kGelu };  // gelu: the tanh approximation

// Collective operations between the processes that share a model. One process: nothing to do.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  virtual void all_reduce_sum(std::span<float>) {}
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  // "cpu avx512, 2 threads"
  virtual int n_threads() const = 0;
  virtual Communicator& communicator() = 0;

  // y[r] = row tokens[r] of the table. y: [tokens.size(), n_inputs of table].
  virtual void embed(const PackedMatrix& table, std::span<const int32_t> tokens, float* y) = 0;
  // y = x / sqrt(mean(x^2) + eps) * weight, per row. x, y: [n_rows, n_cols]; may be the same buffer.
  virtual void rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t n_cols, float eps,
                        float* y) = 0;
  // x converted to `format` (f32, bf16, int8).
  virtual ActivationView prepare(Format format, const float* x, int64_t n_rows, int64_t n_cols,
                                 ActivationBuffer& out) = 0;
  // rms_norm followed by prepare, in one pass over each row; bit-identical to the two.
  virtual ActivationView rms_norm_prepare(Format format, const float* x, const float* weight, int64_t n_rows,
                                          int64_t n_cols, float eps, ActivationBuffer& out) = 0;
  // Independent products, run under one fork-join.
  virtual void matmul(std::span<const MatmulTask> tasks) = 0;
  // Rotates the first 2 * n_pairs values of every head. x: [n_rows, n_heads * head_dim] with row stride;
  // cosines, sines: [n_rows, n_pairs].
  virtual void rope(float* x, int64_t n_rows, int64_t row_stride, int n_heads, int head_dim, int n_pairs,
                    const float* cosines, const float* sines, RopeStyle style) = 0;
  // Encodes keys and values of n_rows consecutive positions into pages. keys, values: [n_rows, n_kv_heads *
  // head_dim], rows `row_stride` apart.
  virtual void store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride,
                        int n_rows, int first_position) = 0;
  virtual void attention(const AttentionShape& shape, std::span<const AttentionTask> tasks) = 0;
  // out = gate_function(gate) * up, converted to `format`. gate, up: [n_rows, n_cols], rows `row_stride`
  // apart.
  virtual ActivationView gate_prepare(Format format, GateFunction function, const float* gate,
                                      const float* up, int64_t row_stride, int64_t n_rows, int64_t n_cols,
                                      ActivationBuffer& out) = 0;
  // x += y. [n]
  virtual void add(float* x, const float* y, int64_t n) = 0;
};

// `isa`: "auto" (the best this CPU has), "portable", "avx2", "avx512"; ASSAY_ISA overrides "auto".
// kUnsupported when the CPU lacks it, kInvalidArgument for another name. n_threads 0: every CPU available.
// `pin_threads` keeps each thread on one CPU, physical cores first (kUnsupported where the machine's topology
// cannot be read), the thread that calls the backend too.
Result<std::shared_ptr<Backend>> make_cpu_backend(std::string_view isa = "auto", int n_threads = 0,
                                                  bool pin_threads = false);

}  // namespace assay
