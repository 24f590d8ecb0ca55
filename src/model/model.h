// A model at one precision, ready to run ragged batches over paged KV.
//
// Guarantee (batch invariance): the hidden state and logits of a token depend only on its sequence's tokens,
// their phases and the kernel table; not on the other sequences of the batch, how the prompt was cut into
// pieces, whether prefix pages were reused, or the number of threads. Bit for bit.
//
// Ownership: copies what it needs out of the checkpoint, which may be closed after load().
// Thread safety: one forward() at a time. Memory: weights and workspace are allocated by load(); steps
// allocate nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "kvcache/kv_pool.h"
#include "model/model_config.h"
#include "numeric/precision.h"

namespace assay {

struct CalibratedWeights;

// Consecutive tokens of one sequence.
struct SequenceSlice {
  std::span<const int32_t> tokens;
  int32_t first_position = 0;
  // Pages covering positions [0, first_position + tokens.size()).
  std::span<const int32_t> blocks;
  // Leading tokens that belong to the prompt: they run at the prefill activation format, the rest at
  // decode's.
  int32_t n_prompt = 0;
  // Hidden states are wanted of tokens [first_wanted, tokens.size()); those before only store their keys and
  // values, and cost nothing after the last layer's.
  int32_t first_wanted = 0;

  int64_t n_wanted() const { return static_cast<int64_t>(tokens.size()) - first_wanted; }
};

struct EffectiveFormat {
  std::string tensor;     // "blk.0.ffn_down.weight"
  std::string stored;     // "Q4_1"
  WeightFormat executed;  // never as_shipped: what really runs
  uint64_t bytes = 0;     // resident
};

struct LoadOptions {
  int max_batch_tokens = 512;  // most tokens of one forward()
  int max_context = 0;         // 0: the model's own
  // Called with the share done, 0..1; return false to cancel (load() then fails with kCancelled).
  std::function<bool(double)> progress;
  // For a precision that needs them (calibration.h); the matrices are moved out.
  std::shared_ptr<CalibratedWeights> calibrated;
};

// Sees the residual stream after the embedding (layer -1), after every layer, and after the final norm
// (layer n_layers). hidden: [n_tokens, n_embedding]; every token must be wanted (CHECKed). For measuring; null
// in serving.
using LayerObserver = std::function<void(int layer, std::span<const float> hidden)>;

// What the matrices of a layer read: query, key and value share one input, gate and up another.
enum class MatrixInput : uint8_t { kAttention, kAttentionOutput, kFeedForward, kDown, kCount };
// Sees the activations that enter the matrices, in the format they are executed in, a group of rows at a time.
using InputObserver = std::function<void(int layer, MatrixInput input, const ActivationView& rows)>;

class Model {
 public:
  // kCorrupt: missing tensors, wrong shapes, NaN or infinite weights (named); kUnsupported: architecture,
  // block type, or a precision without kernels; kResourceExhausted: does not fit, with the sum;
  // kInvalidArgument: the precision needs calibrated weights and options.calibrated lacks them.
  static Result<std::unique_ptr<Model>> load(const Checkpoint& checkpoint, const Precision& precision,
                                             std::shared_ptr<Backend> backend, LoadOptions options = {});
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const Precision& precision() const = 0;
  virtual std::span<const EffectiveFormat> effective_formats() const = 0;
  virtual Backend& backend() = 0;
  virtual uint64_t weight_bytes() const = 0;
  virtual uint64_t workspace_bytes() const = 0;
  virtual int max_batch_tokens() const = 0;
  virtual int max_context() const = 0;
  virtual KvLayout kv_layout(int page_tokens = 16) const = 0;

  // Runs every slice, stores K and V in the pool, writes the final hidden states (after the last norm) of the
  // tokens that are wanted. hidden: [sum of n_wanted(), n_embedding], in slice order. Token ids must be below
  // n_vocab (CHECKed).
  virtual void forward(std::span<const SequenceSlice> batch, KvPool& pool, std::span<float> hidden) = 0;
  // Logits of chosen hidden rows. hidden: [n_rows, n_embedding] -> logits: [n_rows, n_vocab]. The phase picks
  // the activation format: that of the token whose row it is. n_rows <= max_batch_tokens().
  virtual void project(std::span<const float> hidden, int64_t n_rows, Phase phase,
                       std::span<float> logits) = 0;

  virtual void set_observer(LayerObserver observer) = 0;
  virtual void set_input_observer(InputObserver observer) = 0;
};

}  // namespace assay
