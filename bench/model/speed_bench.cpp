// Prefill and decode rates of a model at given precisions, load time and peak memory.
//   speed_bench [--model FILE] [--precision TEXT]... [--prompt 512] [--decode 64] [--repeats 5] [--threads 0]
//               [--llama-bench PATH] [--json]
// With --llama-bench, that program runs on the same file between our repeats, and the ratios are medians over
// the pairs, so that whatever else the machine does hits both.
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/stats.h"
#include "figures.h"
#include "kvcache/page_table.h"
#include "model/model.h"

namespace {

using namespace assay;

struct Options {
  std::string model;
  int n_prompt, n_decode, n_repeats, n_threads;
  std::string llama_bench;
};

struct Rates {
  double prefill = 0;  // tokens/s
  double decode = 0;
};

double peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// A prompt in one piece with the logits of its last token, then tokens one by one with theirs: what
// llama-bench times.
Rates run_once(Model& model, KvPool& pool, const Options& options, Random& random) {
  const auto n_vocab = static_cast<uint64_t>(model.config().n_vocab);
  const auto n_embedding = static_cast<size_t>(model.config().n_embedding);
  std::vector<int32_t> tokens;
  for (int i = 0; i < options.n_prompt + options.n_decode; ++i)
    tokens.push_back(static_cast<int32_t>(random.below(n_vocab)));
  std::vector<float> hidden(static_cast<size_t>(options.n_prompt) * n_embedding), logits(n_vocab);
  Rates rates;
  PageTable pages(pool);
  CHECK(pages.grow(options.n_prompt));
  const Stopwatch prefill;
  const SequenceSlice prompt{.tokens = std::span(tokens).first(static_cast<size_t>(options.n_prompt)),
                             .blocks = pages.blocks(),
                             .n_prompt = options.n_prompt};
  model.forward({&prompt, 1}, pool, hidden);
  model.project(std::span(hidden).last(n_embedding), 1, Phase::kPrefill, logits);
  rates.prefill = options.n_prompt / prefill.seconds();
  pages.clear();
  const Stopwatch decode;
  for (int i = 0; i < options.n_decode; ++i) {
    CHECK(pages.grow(i + 1));
    const SequenceSlice slice{.tokens = std::span(tokens).subspan(static_cast<size_t>(i), 1),
                              .first_position = i,
                              .blocks = pages.blocks()};
    model.forward({&slice, 1}, pool, std::span(hidden).first(n_embedding));
    model.project(std::span(hidden).first(n_embedding), 1, Phase::kDecode, logits);
  }
  rates.decode = options.n_decode / decode.seconds();
  return rates;
}

Result<Rates> run_llama_bench(const Options& options, int n_threads) {
  const std::string command =
      fmt::format("'{}' -m '{}' -p {} -n {} -t {} -r 1 -o json 2>/dev/null", options.llama_bench,
                  options.model, options.n_prompt, options.n_decode, n_threads);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) return fail(ErrorCode::kIo, options.llama_bench, "cannot be started");
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    output.append(buffer.data(), n);
  boost::system::error_code error;
  const auto value = boost::json::parse(output, error);
  if (error || !value.is_array() || value.as_array().size() != 2) {
    return fail(ErrorCode::kCorrupt, options.llama_bench, "expected two results as JSON, found: {}",
                output.substr(0, 200));
  }
  Rates rates;
  for (const auto& row : value.as_array()) {
    (row.at("n_prompt").to_number<int>() > 0 ? rates.prefill : rates.decode) =
        row.at("avg_ts").to_number<double>();
  }
  return rates;
}

double median_of(const std::vector<Rates>& rates, double Rates::* field) {
  std::vector<double> values;
  for (const Rates& rate : rates) values.push_back(rate.*field);
  return median(values);
}

Result<void> measure(const Options& options, const std::string& text, bench::Figures& figures) {
  ASSIGN_OR_RETURN(const Precision precision, parse_precision(text));
  ASSIGN_OR_RETURN(const auto backend, make_cpu_backend("auto", options.n_threads));
  Stopwatch watch;
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.model));
  ASSIGN_OR_RETURN(const auto model,
                   Model::load(checkpoint, precision, backend, {.max_batch_tokens = options.n_prompt}));
  const double load_seconds = watch.seconds();
  const int n_positions = std::max(options.n_prompt, options.n_decode);
  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(model->kv_layout(), (n_positions + 15) / 16));
  Random random(1);
  run_once(*model, pool, options, random);  // warm
  std::vector<Rates> ours, theirs, ratios;
  for (int i = 0; i < options.n_repeats; ++i) {
    ours.push_back(run_once(*model, pool, options, random));
    if (options.llama_bench.empty()) continue;
    ASSIGN_OR_RETURN(const Rates other, run_llama_bench(options, backend->n_threads()));
    theirs.push_back(other);
    ratios.push_back({ours.back().prefill / other.prefill, ours.back().decode / other.decode});
  }
  const std::string how = fmt::format("{}, random tokens, medians", backend->name());
  const int n = options.n_repeats;
  figures.add(fmt::format("load, {}", text), load_seconds, "s", 1, how, bench::Bound{2, false});
  figures.add(fmt::format("prefill {}, {}", options.n_prompt, text), median_of(ours, &Rates::prefill),
              "tokens/s", n, how);
  figures.add(fmt::format("decode {}, {}", options.n_decode, text), median_of(ours, &Rates::decode),
              "tokens/s", n, how);
  figures.add(fmt::format("weights, {}", text), static_cast<double>(model->weight_bytes()), "bytes", 1,
              "exact");
  figures.add(fmt::format("workspace, {}", text), static_cast<double>(model->workspace_bytes()), "bytes", 1,
              "exact");
  figures.add(fmt::format("peak resident memory so far, {}", text), peak_bytes(), "bytes", 1, "getrusage");
  if (theirs.empty()) return {};
  const std::string paired =
      fmt::format("llama-bench -t {} on the same file between our repeats", backend->n_threads());
  figures.add("llama.cpp prefill", median_of(theirs, &Rates::prefill), "tokens/s", n, paired);
  figures.add("llama.cpp decode", median_of(theirs, &Rates::decode), "tokens/s", n, paired);
  const bench::Bound bound{0.7, true};
  figures.add(fmt::format("prefill over llama.cpp's, {}", text), median_of(ratios, &Rates::prefill), "ratio",
              n, paired, bound);
  figures.add(fmt::format("decode over llama.cpp's, {}", text), median_of(ratios, &Rates::decode), "ratio", n,
              paired, bound);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const Options options{
      .model = arguments.text("--model", (assay_home() / "models/SmolLM2-135M-Instruct.Q4_1.gguf").string()),
      .n_prompt = arguments.integer("--prompt", 512),
      .n_decode = arguments.integer("--decode", 64),
      .n_repeats = std::max(arguments.integer("--repeats", 5), 1),
      .n_threads = arguments.integer("--threads", 0),
      .llama_bench = arguments.text("--llama-bench", "")};
  std::vector<std::string> precisions = arguments.all("--precision");
  if (precisions.empty()) precisions = {"w=file a=int8 kv=bf16"};
  bench::Figures figures;
  for (const std::string& precision : precisions) {
    if (const auto done = measure(options, precision, figures); !done) {
      fmt::print(stderr, "{}\n", done.error().message());
      return 1;
    }
  }
  figures.print(arguments.has("--json"));
  return 0;
}
