// All of the recorded comparison with llama.cpp at f32 activations (tests/model/data/smollm2_llama_cpp.json
// tells how it was recorded): perplexity of 8 windows, and 20 greedy continuations of 64 tokens.
//   parity_bench [--model FILE] [--data FILE] [--precision "w=file a=f32 kv=f32"] [--windows 8] [--prompts
//   20] [--json]
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/arguments.h"
#include "bench/figures.h"
#include "kvcache/page_table.h"
#include "model/model.h"

namespace {

using namespace assay;

constexpr int kBatch = 512;
constexpr size_t kProjected = 32;
constexpr double kTie = 1e-3;

std::vector<int32_t> ids_of(const boost::json::value& array) {
  return boost::json::value_to<std::vector<int32_t>>(array);
}

class Run {
 public:
  Run(Model& model, KvPool& pool)
      : model_(model),
        pool_(pool),
        pages_(pool),
        n_embedding_(static_cast<size_t>(model.config().n_embedding)),
        n_vocab_(static_cast<size_t>(model.config().n_vocab)) {}

  std::vector<float> forward(std::span<const int32_t> tokens, bool is_prompt) {
    const auto n = static_cast<int>(tokens.size());
    if (!pages_.grow(position_ + n)) return {};
    const SequenceSlice slice{.tokens = tokens,
                              .first_position = position_,
                              .blocks = pages_.blocks(),
                              .n_prompt = is_prompt ? n : 0};
    std::vector<float> hidden(tokens.size() * n_embedding_);
    model_.forward({&slice, 1}, pool_, hidden);
    position_ += n;
    return hidden;
  }
  // [n_rows, n_vocab]
  std::vector<float> project(std::span<const float> hidden, size_t first, size_t n_rows, Phase phase) {
    std::vector<float> logits(n_rows * n_vocab_);
    model_.project(hidden.subspan(first * n_embedding_, n_rows * n_embedding_), static_cast<int64_t>(n_rows),
                   phase, logits);
    return logits;
  }
  size_t n_vocab() const { return n_vocab_; }

 private:
  Model& model_;
  KvPool& pool_;
  PageTable pages_;
  size_t n_embedding_, n_vocab_;
  int position_ = 0;
};

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  const float top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - top));
  return std::log(sum) - (logits[static_cast<size_t>(token)] - top);
}

// The sum over the scored half of a window, as llama-perplexity counts.
double window_sum(Model& model, KvPool& pool, std::span<const int32_t> tokens) {
  Run run(model, pool);
  const auto hidden = run.forward(tokens, true);
  double sum = 0;
  const size_t last = tokens.size() - 1;
  for (size_t at = tokens.size() / 2; at < last; at += kProjected) {
    const size_t n = std::min(kProjected, last - at);
    const auto logits = run.project(hidden, at, n, Phase::kPrefill);
    for (size_t i = 0; i < n; ++i) {
      sum += negative_log_likelihood(std::span(logits).subspan(i * run.n_vocab(), run.n_vocab()),
                                     tokens[at + i + 1]);
    }
  }
  return sum;
}

// Index of the first token that differs from the recorded ones, and our logit gap there; -1 when none does.
struct Difference {
  int at = -1;
  double gap = 0;
};
Difference first_difference(Model& model, KvPool& pool, const std::vector<int32_t>& prompt,
                            const std::vector<int32_t>& expected) {
  Run run(model, pool);
  auto hidden = run.forward(prompt, true);
  size_t row = prompt.size() - 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto logits = run.project(hidden, row, 1, i == 0 ? Phase::kPrefill : Phase::kDecode);
    const auto best = std::ranges::max_element(logits);
    const auto token = static_cast<int32_t>(best - logits.begin());
    if (token != expected[i]) {
      const float top = std::exchange(*best, -std::numeric_limits<float>::infinity());
      return {static_cast<int>(i), static_cast<double>(top) - *std::ranges::max_element(logits)};
    }
    hidden = run.forward({&token, 1}, false);
    row = 0;
  }
  return {};
}

Result<void> compare(const bench::Arguments& arguments, std::vector<bench::Figure>& figures) {
  const std::string path =
      arguments.text("--model", (assay_home() / "models/SmolLM2-135M-Instruct.Q4_1.gguf").string());
  ASSIGN_OR_RETURN(
      const std::string text,
      read_file(arguments.text("--data", ASSAY_SOURCE_DIR "/tests/model/data/smollm2_llama_cpp.json")));
  const auto data = boost::json::parse(text);
  ASSIGN_OR_RETURN(const Precision precision,
                   parse_precision(arguments.text("--precision", "w=file a=f32 kv=f32")));
  ASSIGN_OR_RETURN(const auto backend, make_cpu_backend());
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  ASSIGN_OR_RETURN(const auto model,
                   Model::load(checkpoint, precision, backend, {.max_batch_tokens = kBatch}));
  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(model->kv_layout(), kBatch / 16));
  const std::string how =
      fmt::format("{} on {}, against recorded llama.cpp", to_string(precision), backend->name());

  const auto& recorded = data.at("perplexity");
  const auto tokens = ids_of(recorded.at("tokens"));
  const int n_windows = std::min(arguments.integer("--windows", 8), static_cast<int>(tokens.size() / kBatch));
  double sum = 0;
  for (int i = 0; i < n_windows; ++i)
    sum += window_sum(*model, pool, std::span(tokens).subspan(static_cast<size_t>(i) * kBatch, kBatch));
  if (n_windows > 0) {
    const int n_scored = n_windows * (kBatch / 2 - 1);
    const double ours = std::exp(sum / n_scored);
    const double theirs =
        std::exp(recorded.at("nll_after_window").at(static_cast<size_t>(n_windows - 1)).to_number<double>());
    const auto add = [&](std::string figure, double value, std::optional<double> bound, const std::string& from) {
      figures.push_back({std::move(figure), value, "", bound, bench::Better::kLower, n_scored, from});
    };
    add(fmt::format("perplexity of {} windows", n_windows), ours, {}, how);
    add("llama.cpp's perplexity of them", theirs, {}, "recorded");
    add("relative difference of perplexity", std::abs(ours / theirs - 1), 1e-3, how);
  }
  const auto& prompts = data.at("greedy").at("prompts").as_array();
  const int n_prompts = std::min(arguments.integer("--prompts", 20), static_cast<int>(prompts.size()));
  int n_same = 0;
  double widest_gap = 0;
  for (int i = 0; i < n_prompts; ++i) {
    const auto& prompt = prompts[static_cast<size_t>(i)];
    const Difference difference =
        first_difference(*model, pool, ids_of(prompt.at("prompt_ids")), ids_of(prompt.at("ids")));
    n_same += difference.at < 0 ? 1 : 0;
    widest_gap = std::max(widest_gap, difference.gap);
  }
  figures.push_back({"greedy continuations of 64 tokens that are identical", static_cast<double>(n_same), "", {},
                     bench::Better::kHigher, n_prompts, how});
  figures.push_back({"largest logit gap where the others part", widest_gap, "", kTie, bench::Better::kLower,
                     n_prompts, how});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  std::vector<bench::Figure> figures;
  if (const auto done = compare(arguments, figures); !done) {
    fmt::print(stderr, "{}\n", done.error().message());
    return 1;
  }
  return bench::print(figures, arguments.has("--json"));
}
