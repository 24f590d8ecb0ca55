// A model whose next token depends on every earlier token, its position and its phase, all read back through
// the pages: a wrong page, position, phase or a page that somebody else wrote changes the answer. Its
// arithmetic is integer, so that answers can be compared for equality, and `answer()` gives the same numbers
// without pages.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "model/model.h"
#include "tokenizer/toy_vocabulary.h"

namespace assay::test {

inline constexpr int32_t kVocab = 272;      // ids 257.. have no text, as padding rows of real models
inline constexpr int32_t kEnd = 256;        // the end-of-generation token of fake_tokenizer()
inline constexpr int32_t kPoison = 200;     // a token that makes every later hidden state NaN
inline constexpr int32_t kBadLogits = 201;  // a token after which logits are NaN, hidden states not

inline std::shared_ptr<const Tokenizer> fake_tokenizer() {
  VocabSpec spec = tokenizer_test::toy_byte_level_spec();
  const int32_t end = tokenizer_test::add_special(spec, "<|end|>");
  CHECK_OP(end, ==, kEnd);
  spec.eos = end;
  spec.end_of_generation = {end};
  auto tokenizer = Tokenizer::create(std::move(spec));
  CHECK(tokenizer.has_value());
  return std::make_shared<const Tokenizer>(std::move(*tokenizer));
}

inline uint64_t mix(uint64_t x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

struct FakeOptions {
  int max_context = 256;
  int max_batch_tokens = 64;
  bool phases_differ = false;  // int8 prefill, f32 decode: pages then depend on the phase
  float end_bias = 0;          // added to the logit of kEnd
};

// What one position contributes; equal formats make the phase invisible, as in real models.
inline uint64_t fold(uint64_t hash, int32_t token, int64_t position, int phase) {
  return mix(hash ^ mix(static_cast<uint64_t>(token) * 1000003 + static_cast<uint64_t>(position) * 8191 +
                        static_cast<uint64_t>(phase)));
}

// Letters and both bytes of "é" are likely, so that texts hold stop strings and characters of two tokens.
inline std::vector<float> fake_logits(uint64_t hash, int phase, float end_bias) {
  std::vector<float> logits(kVocab);
  for (int32_t token = 0; token < kVocab; ++token) {
    const uint64_t bits = mix(hash ^ mix(static_cast<uint64_t>(token * 2 + phase)));
    const bool likely = (token >= 'a' && token <= 'e') || token == 0xC3 || token == 0xA9;
    logits[static_cast<size_t>(token)] = static_cast<float>(bits % 4096) / 1024.0F + (likely ? 4.0F : 0.0F);
  }
  for (const int32_t token : {kPoison, kBadLogits})
    logits[static_cast<size_t>(token)] = -100;  // only by prompt
  logits[kEnd] += end_bias;
  return logits;
}

class FakeModel final : public Model {
 public:
  explicit FakeModel(FakeOptions options = {}) : options_(options) {
    config_.architecture = "fake";
    config_.n_layers = config_.n_heads = config_.n_kv_heads = 1;
    config_.n_embedding = 4;
    config_.head_dim = 2;
    config_.n_vocab = kVocab;
    config_.context_length = options.max_context;
    if (options.phases_differ) precision_.prefill_activations = Format::kInt8;
  }

  const ModelConfig& config() const override { return config_; }
  const Precision& precision() const override { return precision_; }
  std::span<const EffectiveFormat> effective_formats() const override { return {}; }
  Backend& backend() override { check_failed(__FILE__, __LINE__, "no backend", {}); }
  uint64_t weight_bytes() const override { return 0; }
  uint64_t workspace_bytes() const override { return 0; }
  int max_batch_tokens() const override { return options_.max_batch_tokens; }
  int max_context() const override { return options_.max_context; }
  void set_observer(LayerObserver) override {}
  void set_input_observer(InputObserver) override {}

  KvLayout kv_layout(int page_tokens) const override {
    return {.n_layers = 1, .n_kv_heads = 1, .head_dim = 2, .page_tokens = page_tokens};
  }

  void forward(std::span<const SequenceSlice> batch, KvPool& pool, std::span<float> hidden) override {
    ++n_forwards;
    int64_t row = 0, n_tokens = 0;
    for (const SequenceSlice& slice : batch) {
      const KvView view = pool.view(0, slice.blocks);
      CHECK_OP(ceil_div(slice.first_position + std::ssize(slice.tokens), view.page_tokens), <=,
               std::ssize(slice.blocks));
      for (int64_t i = 0; i < std::ssize(slice.tokens); ++i) {
        const int64_t position = slice.first_position + i;
        const int phase = options_.phases_differ && i >= slice.n_prompt ? 1 : 0;
        store(view, position, slice.tokens[static_cast<size_t>(i)], phase);
        ++n_tokens;
        if (i < slice.first_wanted) continue;
        write_hidden(view, position, hidden.subspan(static_cast<size_t>(row++) * 4, 4));
      }
    }
    CHECK_OP(static_cast<size_t>(row) * 4, ==, hidden.size());
    CHECK_OP(n_tokens, <=, options_.max_batch_tokens);
    n_computed_tokens += n_tokens;
    if (on_forward) on_forward(n_tokens);
  }

  void project(std::span<const float> hidden, int64_t n_rows, Phase phase, std::span<float> logits) override {
    CHECK_OP(n_rows * kVocab, ==, std::ssize(logits));
    for (int64_t row = 0; row < n_rows; ++row) {
      uint64_t hash = 0;
      for (int part = 0; part < 4; ++part)
        hash |= static_cast<uint64_t>(hidden[static_cast<size_t>(row * 4 + part)]) << (16 * part);
      const int seen_phase = options_.phases_differ && phase == Phase::kDecode ? 1 : 0;
      std::vector<float> values = fake_logits(hash, seen_phase, options_.end_bias);
      if (hash == kBadHash) values[17] = std::numeric_limits<float>::quiet_NaN();
      std::ranges::copy(values, logits.begin() + row * kVocab);
    }
  }

  int64_t n_forwards = 0;
  int64_t n_computed_tokens = 0;
  std::function<void(int64_t n_tokens)> on_forward;  // e.g. lets a virtual clock pass

 private:
  static constexpr uint64_t kBadHash = 0x0123456789abcdefULL;

  static float* row_of(const KvView& view, size_t plane, int64_t position) {
    const auto block = static_cast<size_t>(view.blocks[position / view.page_tokens]);
    auto* rows = reinterpret_cast<float*>(view.base + block * view.block_bytes + plane);
    return rows + (position % view.page_tokens) * view.head_dim;
  }

  static void store(const KvView& view, int64_t position, int32_t token, int phase) {
    float* key = row_of(view, view.key_offset, position);
    float* value = row_of(view, view.value_offset, position);
    key[0] = static_cast<float>(token);
    key[1] = static_cast<float>(phase);
    value[0] = static_cast<float>(position);
  }

  static void write_hidden(const KvView& view, int64_t position, std::span<float> hidden) {
    uint64_t hash = 0;
    bool poisoned = false;
    int32_t last = 0;
    for (int64_t p = 0; p <= position; ++p) {
      const float* key = row_of(view, view.key_offset, p);
      last = static_cast<int32_t>(key[0]);
      poisoned |= last == kPoison;
      const auto stored_position = static_cast<int64_t>(row_of(view, view.value_offset, p)[0]);
      hash = fold(hash, last, stored_position, static_cast<int>(key[1]));
    }
    if (last == kBadLogits) hash = kBadHash;
    for (int part = 0; part < 4; ++part) {
      hidden[static_cast<size_t>(part)] = static_cast<float>((hash >> (16 * part)) & 0xffff);
      if (poisoned) hidden[static_cast<size_t>(part)] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  FakeOptions options_;
  ModelConfig config_;
  Precision precision_;
};

struct Answer {
  std::vector<int32_t> tokens;
  std::string text;
  std::string stop_text;
  FinishReason reason = FinishReason::kLength;
};

// What FakeModel must answer to `request` (with a seed or temperature 0), computed from the token list alone.
inline Answer answer(const FakeOptions& options, const Tokenizer& tokenizer,
                     const GenerationRequest& request) {
  Answer result;
  std::vector<int32_t> tokens = request.prompt;
  const auto n_prompt = std::ssize(tokens);
  int64_t longest = options.max_context;
  if (request.max_tokens > 0) longest = std::min<int64_t>(longest, n_prompt + request.max_tokens);
  Sampler sampler(request.sampling, request.prompt);
  SamplerWorkspace workspace;
  std::string bytes;
  while (std::ssize(tokens) < longest) {
    uint64_t hash = 0;
    int phase = 0;
    for (int64_t p = 0; p < std::ssize(tokens); ++p) {
      phase = options.phases_differ && p >= n_prompt ? 1 : 0;
      hash = fold(hash, tokens[static_cast<size_t>(p)], p, phase);
    }
    const auto sampled = sampler.sample(fake_logits(hash, phase, options.end_bias), workspace);
    CHECK(sampled.has_value());
    if (sampled->token == kEnd && !request.ignore_end_of_generation) {
      result.reason = FinishReason::kStop;
      break;
    }
    tokens.push_back(sampled->token);
    result.tokens.push_back(sampled->token);
  }
  // The text of ever more tokens: the first that holds a stop string ends the answer there.
  const auto text_of = [&](size_t n) {
    StreamDecoder decoder(tokenizer, !request.keep_special);
    std::string text;
    for (size_t i = 0; i < n; ++i) text += decoder.push(result.tokens[i]);
    return text;
  };
  for (size_t n = 1; n <= result.tokens.size(); ++n) {
    const std::string text = text_of(n);
    size_t end = std::string::npos;
    for (const std::string& stop : request.stop) {
      const size_t at = text.find(stop);
      if (at == std::string::npos || at + stop.size() > end) continue;
      if (at + stop.size() < end || stop.size() > result.stop_text.size()) result.stop_text = stop;
      end = at + stop.size();
    }
    if (end == std::string::npos) continue;
    result.tokens.resize(n);
    result.text = text.substr(0, end - result.stop_text.size());
    result.reason = FinishReason::kStop;
    return result;
  }
  StreamDecoder decoder(tokenizer, !request.keep_special);
  for (const int32_t token : result.tokens) result.text += decoder.push(token);
  result.text += decoder.finish();
  return result;
}

}  // namespace assay::test
