// The runs that engines are compared by: assay in this process, and llama.cpp's bench programs (or its fork
// ik_llama.cpp's) as they print them. Rates are tokens per second over all sequences. Header only.
#pragma once

#include <boost/json.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "kernels/cpu_backend.h"
#include "kvcache/page_table.h"
#include "model/model.h"
#include "subprocess_run.h"

namespace assay::bench {

struct Test {
  enum class Kind { kPrefill, kDecode, kSequences } kind;
  int n = 0;  // prompt tokens, context, or sequences

  std::string name() const {
    return kind == Kind::kPrefill  ? fmt::format("prefill {}", n)
           : kind == Kind::kDecode ? fmt::format("decode at context {}", n)
                                   : fmt::format("decode of {} sequences", n);
  }
};
inline constexpr int kGenerated = 32;        // tokens per sequence of a decode test
inline constexpr int kSequenceContext = 128;  // that each of several sequences has at the start
inline constexpr int kBatch = 512;           // tokens of a prefill step, as llama.cpp's default

// One loaded model.
class OwnEngine {
 public:
  static Result<std::unique_ptr<OwnEngine>> load(const std::string& path, const std::string& precision,
                                                 int n_threads, bool pin_threads, int most_positions,
                                                 int most_sequences) {
    auto engine = std::make_unique<OwnEngine>();
    ASSIGN_OR_RETURN(const Precision parsed, parse_precision(precision));
    ASSIGN_OR_RETURN(engine->backend_, make_cpu_backend("auto", n_threads, pin_threads));
    const Stopwatch watch;
    ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
    ASSIGN_OR_RETURN(engine->model_, Model::load(checkpoint, parsed, engine->backend_,
                                                 {.max_batch_tokens = kBatch, .max_context = 0, .progress = {}}));
    engine->load_seconds_ = watch.seconds();
    const int positions = std::max(most_positions, most_sequences * (kSequenceContext + kGenerated + 16));
    ASSIGN_OR_RETURN(KvPool pool, KvPool::create(engine->model_->kv_layout(), (positions + 15) / 16 + 1));
    engine->pool_ = std::make_unique<KvPool>(std::move(pool));
    const size_t rows = static_cast<size_t>(std::max(kBatch, most_sequences));
    engine->hidden_.resize(rows * engine->width());
    engine->logits_.resize(static_cast<size_t>(std::max(most_sequences, 1) * engine->model_->config().n_vocab));
    return engine;
  }

  Model& model() { return *model_; }
  double load_seconds() const { return load_seconds_; }
  // Fork-joins of one decode step of the last such test.
  double forks_per_step() const { return forks_per_step_; }

  double rate(const Test& test) {
    if (test.kind == Test::Kind::kPrefill) return prefill(test.n);
    if (test.kind == Test::Kind::kDecode) return decode(1, test.n);
    return decode(test.n, kSequenceContext);
  }

 private:
  size_t width() const { return static_cast<size_t>(model_->config().n_embedding); }
  std::vector<int32_t> random_tokens(int n) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < n; ++i)
      tokens.push_back(static_cast<int32_t>(random_.below(static_cast<uint64_t>(model_->config().n_vocab))));
    return tokens;
  }

  // In steps of kBatch, with the logits of the last token of each step, as llama-bench does.
  double prefill(int n) {
    const std::vector<int32_t> tokens = random_tokens(n);
    PageTable pages(*pool_);
    CHECK(pages.grow(n));
    const Stopwatch watch;
    for (int first = 0; first < n; first += kBatch) {
      const int count = std::min(kBatch, n - first);
      const SequenceSlice slice{
          .tokens = std::span(tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
          .first_position = first,
          .blocks = pages.blocks(),
          .n_prompt = count,
          .first_wanted = count - 1};
      const auto hidden = std::span(hidden_).first(width());
      model_->forward({&slice, 1}, *pool_, hidden);
      model_->project(hidden, 1, Phase::kPrefill,
                      std::span(logits_).first(static_cast<size_t>(model_->config().n_vocab)));
    }
    return n / watch.seconds();
  }

  // From a context that is not computed but filled: 0x3C bytes are ordinary numbers in every format.
  double decode(int n_sequences, int context) {
    const int start = std::min(context, model_->max_context() - kGenerated);
    std::vector<PageTable> pages;
    for (int i = 0; i < n_sequences; ++i) {
      pages.emplace_back(*pool_);
      CHECK(pages.back().grow(start + kGenerated));
      const KvView view = pool_->view(0, pages.back().blocks());
      for (const int32_t block : pages.back().blocks())
        std::memset(view.base + static_cast<size_t>(block) * view.block_bytes, 0x3C, view.block_bytes);
    }
    const std::vector<int32_t> tokens = random_tokens(n_sequences * kGenerated);
    std::vector<SequenceSlice> slices(static_cast<size_t>(n_sequences));
    const auto rows = static_cast<size_t>(n_sequences);
    const auto step = [&](int i) {
      for (size_t s = 0; s < rows; ++s)
        slices[s] = {.tokens = std::span(tokens).subspan(static_cast<size_t>(i) * rows + s, 1),
                     .first_position = start + i,
                     .blocks = pages[s].blocks()};
      const auto hidden = std::span(hidden_).first(rows * width());
      model_->forward(slices, *pool_, hidden);
      model_->project(hidden, n_sequences, Phase::kDecode,
                      std::span(logits_).first(rows * static_cast<size_t>(model_->config().n_vocab)));
    };
    step(0);  // the threads are awake
    const auto* cpu = dynamic_cast<const CpuBackend*>(backend_.get());
    const int64_t forks = cpu != nullptr ? cpu->forks() : 0;
    const Stopwatch watch;
    for (int i = 0; i < kGenerated; ++i) step(i);
    if (cpu != nullptr) forks_per_step_ = static_cast<double>(cpu->forks() - forks) / kGenerated;
    return n_sequences * kGenerated / watch.seconds();
  }

  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvPool> pool_;
  std::vector<float> hidden_;
  std::vector<float> logits_;
  Random random_{1, "engine_runs"};
  double load_seconds_ = 0;
  double forks_per_step_ = 0;
};

// A llama-bench and, for several sequences, a llama-batched-bench.
struct Peer {
  std::string name;  // "llama.cpp"
  std::string bench, batched_bench;
  bool is_ik = false;
  bool runs(const Test& test) const {
    return !(test.kind == Test::Kind::kSequences ? batched_bench : bench).empty();
  }
};

struct PeerRun {
  double rate = 0;
  ProcessMemory memory;
};

inline Result<PeerRun> run_batched(const Peer& peer, const std::string& model, int n, int n_threads) {
  const int context = n * (kSequenceContext + kGenerated);
  std::vector<std::string> words{peer.batched_bench, "-m", model, "-t", std::to_string(n_threads), "-c",
                                 std::to_string(std::max(context, 512)), "-npp", std::to_string(kSequenceContext),
                                 "-ntg", std::to_string(kGenerated), "-npl", std::to_string(n),
                                 "--output-format", "jsonl"};
  if (peer.is_ik) words.insert(words.end(), {"-rtr", "-fa", "on"});
  ASSIGN_OR_RETURN(const Output output, run_program(words));
  for (size_t at = 0; (at = output.text.find('{', at)) != std::string::npos; ++at) {
    boost::system::error_code error;
    const auto value = boost::json::parse(output.text.substr(at, output.text.find('\n', at) - at), error);
    if (!error && value.is_object() && value.as_object().contains("speed_tg"))
      return PeerRun{value.at("speed_tg").to_number<double>(), output.memory};
  }
  return fail(ErrorCode::kCorrupt, peer.batched_bench, "expected a line of JSON with speed_tg, found: {}",
              output.text.substr(0, 200));
}

inline Result<PeerRun> run_peer(const Peer& peer, const std::string& model, const Test& test, int n_threads) {
  if (test.kind == Test::Kind::kSequences) return run_batched(peer, model, test.n, n_threads);
  const bool is_prefill = test.kind == Test::Kind::kPrefill;
  const std::string n = std::to_string(test.n), generated = std::to_string(kGenerated);
  std::vector<std::string> words{peer.bench, "-m", model, "-t", std::to_string(n_threads), "-r", "1", "-o", "json"};
  if (peer.is_ik) words.insert(words.end(), {"-rtr", "1", "-fa", "1"});
  if (is_prefill) {
    words.insert(words.end(), {"-p", n, "-n", "0"});
  } else if (test.n == 0) {
    words.insert(words.end(), {"-p", "0", "-n", generated});
  } else if (peer.is_ik) {
    words.insert(words.end(), {"-p", "0", "-n", "0", "-gp", n + "," + generated});
  } else {
    words.insert(words.end(), {"-p", "0", "-n", generated, "-d", n});
  }
  ASSIGN_OR_RETURN(const Output output, run_program(words));
  boost::system::error_code error;
  const auto value = boost::json::parse(output.text.substr(std::min(output.text.find('['), output.text.size())), error);
  if (error || !value.is_array() || value.as_array().size() != 1) {
    return fail(ErrorCode::kCorrupt, peer.bench, "expected one result as JSON, found: {}",
                output.text.substr(0, 200));
  }
  return PeerRun{value.as_array()[0].at("avg_ts").to_number<double>(), output.memory};
}

}  // namespace assay::bench
