// What the model tests share: where the checkpoints are, and a sequence run step by step over its own pages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "kvcache/page_table.h"
#include "model/model.h"

namespace assay::test {

// Both may not exist; tests then skip.
inline std::filesystem::path smollm_path() {
  return assay_home() / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
}
inline std::filesystem::path shared_data(std::string_view name) {
  const char* root = std::getenv("ASSAY_SHARED_DATA");
  return std::filesystem::path(root != nullptr ? root : ASSAY_SOURCE_DIR "/../shared/data") / name;
}
inline std::filesystem::path stories_path() {
  return shared_data("models/stories260K.gguf");
}

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path) << " is not here"

// A failure prints the error and ends the test through the exception of value().
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message();
    throw std::runtime_error(result.error().message());
  }
  return std::move(*result);
}

inline std::shared_ptr<Model> load_model(const std::filesystem::path& path, std::string_view precision,
                                         int n_threads = 2, LoadOptions options = {.max_batch_tokens = 256},
                                         std::string_view isa = "auto") {
  const Checkpoint checkpoint = must(Checkpoint::open(path));
  return must(Model::load(checkpoint, must(parse_precision(precision)),
                          must(make_cpu_backend(isa, n_threads)), options));
}

// One sequence: tokens go in pieces, hidden states of each piece come out.
class Runner {
 public:
  explicit Runner(Model& model, int64_t n_positions = 1024, int page_tokens = 16)
      : model_(model),
        pool_(std::make_unique<KvPool>(must(
            KvPool::create(model.kv_layout(page_tokens), (n_positions + page_tokens - 1) / page_tokens)))),
        table_(*pool_) {}

  // The last `n_decode` tokens run at the decode format. Returns [tokens, n_embedding].
  std::vector<float> run(std::span<const int32_t> tokens, int n_decode = 0) {
    const auto n = static_cast<int>(tokens.size());
    EXPECT_TRUE(table_.grow(position_ + n));
    const SequenceSlice slice{
        .tokens = tokens, .first_position = position_, .blocks = table_.blocks(), .n_prompt = n - n_decode};
    std::vector<float> hidden(tokens.size() * static_cast<size_t>(model_.config().n_embedding));
    model_.forward({&slice, 1}, *pool_, hidden);
    position_ += n;
    return hidden;
  }
  std::vector<float> run_pieces(std::span<const int32_t> tokens, size_t piece) {
    std::vector<float> hidden;
    for (size_t at = 0; at < tokens.size(); at += piece) {
      const auto part = run(tokens.subspan(at, std::min(piece, tokens.size() - at)));
      hidden.insert(hidden.end(), part.begin(), part.end());
    }
    return hidden;
  }
  // Logits of the last row of `hidden`.
  std::vector<float> logits_of_last(std::span<const float> hidden, Phase phase) {
    std::vector<float> logits(static_cast<size_t>(model_.config().n_vocab));
    model_.project(hidden.last(static_cast<size_t>(model_.config().n_embedding)), 1, phase, logits);
    return logits;
  }

  KvPool& pool() { return *pool_; }
  PageTable& table() { return table_; }
  int position() const { return position_; }
  void start_at(int position) { position_ = position; }

 private:
  Model& model_;
  std::unique_ptr<KvPool> pool_;
  PageTable table_;
  int position_ = 0;
};

struct Continuation {
  std::vector<int32_t> tokens;
  std::vector<float> gaps;  // best logit less the second best
};

inline Continuation continue_greedily(Model& model, std::span<const int32_t> prompt, int n_tokens) {
  Runner runner(model, static_cast<int64_t>(prompt.size()) + n_tokens);
  Continuation out;
  std::vector<float> hidden = runner.run(prompt);
  Phase phase = Phase::kPrefill;
  while (static_cast<int>(out.tokens.size()) < n_tokens) {
    std::vector<float> logits = runner.logits_of_last(hidden, phase);
    const auto best = std::ranges::max_element(logits);
    const auto token = static_cast<int32_t>(best - logits.begin());
    const float top = std::exchange(*best, -std::numeric_limits<float>::infinity());
    out.tokens.push_back(token);
    out.gaps.push_back(top - *std::ranges::max_element(logits));
    hidden = runner.run({&token, 1}, 1);
    phase = Phase::kDecode;
  }
  return out;
}

}  // namespace assay::test
