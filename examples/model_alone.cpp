// Runs a model without tokenizer, engine or server: token ids in, the most likely next ids out.
//   model_alone [checkpoint] [precision]      for example: model_alone model.gguf "w=int8 a=int8 kv=bf16"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "kvcache/page_table.h"
#include "model/model.h"

namespace {

using namespace assay;

constexpr int kTokens = 16;

Result<void> run(const std::filesystem::path& path, const std::string& precision_text) {
  ASSIGN_OR_RETURN(const Precision precision, parse_precision(precision_text));
  ASSIGN_OR_RETURN(const auto backend, make_cpu_backend());
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  ASSIGN_OR_RETURN(const auto model,
                   Model::load(checkpoint, precision, backend, {.max_batch_tokens = kTokens}));
  const ModelConfig& config = model->config();
  fmt::print("{}: {} layers, {} heads, {} tokens, {} in memory as {}; loaded in {:.2f} s on {}\n",
             config.name, config.n_layers, config.n_heads, config.n_vocab,
             format_bytes(model->weight_bytes()), to_string(model->precision()), watch.seconds(),
             backend->name());

  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(model->kv_layout(), 4));
  PageTable pages(pool);
  std::vector<int32_t> tokens = {1};
  std::vector<float> hidden(static_cast<size_t>(config.n_embedding)),
      logits(static_cast<size_t>(config.n_vocab));
  while (static_cast<int>(tokens.size()) < kTokens) {
    const auto n = static_cast<int>(tokens.size());
    if (!pages.grow(n)) return fail(ErrorCode::kResourceExhausted, "example", "out of pages");
    const SequenceSlice slice{.tokens = std::span(tokens).last(1),
                              .first_position = n - 1,
                              .blocks = pages.blocks(),
                              .n_prompt = n == 1 ? 1 : 0};
    model->forward({&slice, 1}, pool, hidden);
    model->project(hidden, 1, Phase::kDecode, logits);
    tokens.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  fmt::print("most likely ids: {}\n", fmt::join(tokens, " "));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path path =
      argc > 1 ? std::filesystem::path(argv[1]) : assay_home() / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (argc < 2 && !std::filesystem::exists(path)) {
    fmt::print("no model at {}; get it with: assay pull smollm2-135m, or name a checkpoint\n",
               path.string());
    return 0;
  }
  const auto done = run(path, argc > 2 ? argv[2] : "w=file a=int8 kv=bf16");
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : 1;
}
