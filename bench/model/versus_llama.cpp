// assay and llama.cpp (and its fork ik_llama.cpp) alternately on the same files: medians, and medians of the
// ratios of runs that followed one another, so that whatever else the machine does hits both.
//   versus_llama --model FILE... [--precision TEXT]... [--llama-bench PATH] [--llama-batched-bench PATH]
//                [--ik-llama-bench PATH] [--ik-llama-batched-bench PATH] [--prefill 128,512,2048]
//                [--decode 0,2048,8192] [--sequences 1,4,16,64] [--no-memory] [--repeats 3] [--threads 0]
//                [--pin-threads] [--json]
// Without a peer it prints assay's own figures. An empty list ("--decode ,") leaves a kind of test out.
// Precision: "w=file kv=bf16" with int8 activations for files of integer blocks and bf16 for others.
// "% of limit" is against what probe measures in the same run: for a prefill the operations of all matrix
// products at the arithmetic peak, for one sequence's decode the bytes of weights and keys and values at the
// read rate of a working set of that size.
// Resident memory is taken from /proc of processes that each load the model and run a prefill of 512.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/stats.h"
#include "bench/arguments.h"
#include "bench/figures.h"
#include "bench/limits.h"
#include "engine_runs.h"

namespace {

using namespace assay;
using namespace assay::bench;

struct Options {
  std::vector<std::string> precisions;
  std::vector<Peer> peers;
  std::vector<Test> tests;
  int n_repeats = 3, n_threads = 0, most_positions = kBatch, most_sequences = 1;
  bool pin_threads = false, memory = true;
};

enum class FileKind { kFloat, kInt8, kInt4 };

FileKind kind_of(const Checkpoint& checkpoint) {
  const Tensor* tensor = checkpoint.find("blk.0.ffn_gate.weight");
  if (tensor == nullptr) tensor = &checkpoint.tensors().front();
  if (layout(tensor->type).values == 1) return FileKind::kFloat;
  return layout(tensor->type).bytes * 8 / layout(tensor->type).values >= 8 ? FileKind::kInt8 : FileKind::kInt4;
}

// The ratios that the issue of the kernels asks for, over llama.cpp on the same file.
std::optional<double> goal(const Test& test, FileKind file, bool is_small, const Precision& precision) {
  if (!precision.weights.as_shipped) return {};
  if (test.kind == Test::Kind::kPrefill && test.n == 512) {
    if (file == FileKind::kInt8) return is_small ? 3.5 : 3.0;
    if (file == FileKind::kInt4) return is_small ? 2.8 : 2.3;
    return is_small ? 1.6 : 1.15;
  }
  if (test.kind == Test::Kind::kDecode && test.n == 0) {
    if (file == FileKind::kFloat) return is_small ? 1.15 : 1.03;
    if (file == FileKind::kInt8) return is_small ? 1.4 : 1.1;
    return is_small ? 1.4 : 1.03;
  }
  if (test.kind == Test::Kind::kDecode && test.n == 8192) {
    if (precision.kv_key == Format::kInt8) return 2.0;
    return 1.5;
  }
  if (test.kind == Test::Kind::kSequences && test.n == 16 && file != FileKind::kFloat) return 3.0;
  return {};
}

// What a process needs that loads the model and runs one prefill: run by the program itself.
int print_own_memory(const Arguments& arguments) {
  auto engine = OwnEngine::load(arguments.text("--model", ""), arguments.text("--precision", ""),
                                arguments.integer("--threads", 0), false, kBatch, 1);
  if (!engine) return 1;
  (*engine)->rate({Test::Kind::kPrefill, kBatch});
  const ProcessMemory memory = memory_of("self");
  fmt::print("{} {}\n", memory.resident_bytes, memory.peak_bytes);
  return 0;
}

class Comparison {
 public:
  Comparison(const Options& options, std::string path, std::vector<Figure>& figures)
      : options_(options), path_(std::move(path)), figures_(figures) {}

  Result<void> run() {
    RETURN_IF_ERROR(load());
    for (const Test& test : options_.tests) RETURN_IF_ERROR(compare(test));
    if (options_.memory) RETURN_IF_ERROR(compare_memory());
    return {};
  }

 private:
  std::string label(const std::string& what, const std::string& who) const {
    return fmt::format("{}, {}, {}", what, std::filesystem::path(path_).stem().string(), who);
  }
  void add(const std::string& what, const std::string& who, double value, const char* unit, int n,
           const std::string& how, std::optional<double> bound = {}, Better better = Better::kHigher) {
    figures_.push_back({label(what, who), value, unit, bound, better, n, how});
    // As they come, because a run takes minutes and may be stopped; the whole follows on stdout.
    fmt::print(stderr, "{}: {:.5g} {}\n", figures_.back().figure, value, unit);
  }

  Result<void> load() {
    {
      ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path_));
      file_ = kind_of(checkpoint);
    }
    precisions_ = options_.precisions;
    if (precisions_.empty())
      precisions_ = {file_ == FileKind::kFloat ? "w=file a=bf16 kv=bf16" : "w=file a=int8 kv=bf16"};
    for (const std::string& precision : precisions_) {
      ASSIGN_OR_RETURN(auto engine, OwnEngine::load(path_, precision, options_.n_threads, options_.pin_threads,
                                                    options_.most_positions, options_.most_sequences));
      n_threads_ = engine->model().backend().n_threads();
      is_small_ = engine->model().weight_bytes() < 600'000'000 && engine->model().config().n_embedding < 1024;
      add("load", precision, engine->load_seconds(), "s", 1, "once");
      add("weights", precision, static_cast<double>(engine->model().weight_bytes()), "bytes", 1, "exact");
      add("workspace", precision, static_cast<double>(engine->model().workspace_bytes()), "bytes", 1, "exact");
      engine->rate({Test::Kind::kPrefill, 64});  // warm
      engines_.push_back(std::move(engine));
    }
    return {};
  }

  Result<void> compare(const Test& test) {
    std::vector<std::vector<double>> ours(engines_.size());
    std::map<std::string, std::vector<double>> theirs;
    for (int i = 0; i < options_.n_repeats; ++i) {
      for (size_t e = 0; e < engines_.size(); ++e) ours[e].push_back(engines_[e]->rate(test));
      for (const Peer& peer : options_.peers) {
        if (!peer.runs(test)) continue;
        ASSIGN_OR_RETURN(const PeerRun run, run_peer(peer, path_, test, n_threads_));
        theirs[peer.name].push_back(run.rate);
      }
    }
    const int n = options_.n_repeats;
    for (size_t e = 0; e < engines_.size(); ++e) {
      add(test.name(), precisions_[e], median(ours[e]), "tokens/s", n, engines_[e]->model().backend().name());
      if (const double share = share_of_limit(test, engines_[e]->model(), median(ours[e])); share > 0)
        add(test.name() + ", share", precisions_[e], 100 * share, "% of limit", n, "limit by probe, same run");
      if (test.kind != Test::Kind::kPrefill)
        add(test.name() + ", forks", precisions_[e], engines_[e]->forks_per_step(), "per step", n, "counted");
    }
    const std::string how = fmt::format("-t {} on the same file, between our runs", n_threads_);
    for (const auto& [name, rates] : theirs) {
      add(test.name(), name, median(rates), "tokens/s", n, how);
      for (size_t e = 0; e < engines_.size(); ++e) {
        std::vector<double> ratios;
        for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(ours[e][i] / rates[i]);
        const auto bound = name == "llama.cpp" ? goal(test, file_, is_small_, engines_[e]->model().precision())
                                               : std::nullopt;
        add(test.name(), precisions_[e] + " over " + name, median(ratios), "ratio", n, "median of paired runs",
            bound);
      }
    }
    return {};
  }

  // Of a rate in tokens per second; 0 where no single limit applies.
  double share_of_limit(const Test& test, Model& model, double rate) {
    const ModelConfig& config = model.config();
    if (test.kind == Test::Kind::kPrefill) {
      const double heads = static_cast<double>(config.n_heads + config.n_kv_heads) * config.head_dim;
      const double values =
          config.n_layers * static_cast<double>(config.n_embedding) * (2 * heads + 3.0 * config.n_feed_forward);
      const double peak = limits_.peak(model.backend(), model.precision().prefill_activations);
      return peak > 0 ? rate * 2 * values / peak : 0;
    }
    if (test.kind == Test::Kind::kSequences) return 0;
    const double bytes = static_cast<double>(model.weight_bytes()) +
                         test.n * static_cast<double>(model.kv_layout().bytes_per_token());
    const double read_rate = limits_.read_rate(n_threads_, static_cast<size_t>(bytes));
    return read_rate > 0 ? rate * bytes / read_rate : 0;
  }

  Result<void> compare_memory() {
    std::vector<ProcessMemory> ours;
    for (const std::string& precision : precisions_) {
      ASSIGN_OR_RETURN(const Output output,
                       run_program({"/proc/self/exe", "--own-memory", "--model", path_, "--precision", precision,
                                    "--threads", std::to_string(options_.n_threads)}));
      char* rest = nullptr;
      const double resident = std::strtod(output.text.c_str(), &rest);
      ours.push_back({resident, std::strtod(rest, nullptr)});
      const char* how = "VmRSS and VmHWM after a prefill of 512";
      add("resident memory", precision, ours.back().resident_bytes, "bytes", 1, how);
      add("peak resident memory", precision, ours.back().peak_bytes, "bytes", 1, how);
    }
    for (const Peer& peer : options_.peers) {
      if (peer.bench.empty()) continue;
      ASSIGN_OR_RETURN(const PeerRun run, run_peer(peer, path_, {Test::Kind::kPrefill, kBatch}, n_threads_));
      add("peak resident memory", peer.name, run.memory.peak_bytes, "bytes", 1, "VmHWM during a prefill of 512");
      for (size_t e = 0; e < ours.size(); ++e) {
        const auto bound = peer.name == "llama.cpp" && engines_[e]->model().precision().weights.as_shipped
                               ? std::optional(1.05)
                               : std::nullopt;
        add("resident memory", precisions_[e] + " over " + peer.name,
            ours[e].resident_bytes / run.memory.peak_bytes, "ratio", 1,
            "ours after a prefill of 512, over the peer's peak", bound, Better::kLower);
      }
    }
    return {};
  }

  const Options& options_;
  std::string path_;
  std::vector<Figure>& figures_;
  std::vector<std::string> precisions_;
  std::vector<std::unique_ptr<OwnEngine>> engines_;
  FileKind file_ = FileKind::kFloat;
  bool is_small_ = false;
  int n_threads_ = 1;
  Limits limits_;
};

Options options_of(const Arguments& arguments) {
  Options options;
  options.precisions = arguments.all("--precision");
  options.n_repeats = std::max(arguments.integer("--repeats", 3), 1);
  options.n_threads = arguments.integer("--threads", 0);
  options.pin_threads = arguments.has("--pin-threads");
  options.memory = !arguments.has("--no-memory");
  const auto peer = [&](const char* name, const std::string& prefix, bool is_ik) {
    Peer p{name, arguments.text("--" + prefix + "-bench", ""), arguments.text("--" + prefix + "-batched-bench", ""),
           is_ik};
    if (!p.bench.empty() || !p.batched_bench.empty()) options.peers.push_back(std::move(p));
  };
  peer("llama.cpp", "llama", false);
  peer("ik_llama.cpp", "ik-llama", true);
  for (const int n : arguments.integers("--prefill", "128,512,2048")) {
    if (n <= 0) continue;
    options.tests.push_back({Test::Kind::kPrefill, n});
    options.most_positions = std::max(options.most_positions, n);
  }
  for (const int n : arguments.integers("--decode", "0,2048,8192")) {
    if (n < 0) continue;
    options.tests.push_back({Test::Kind::kDecode, n});
    options.most_positions = std::max(options.most_positions, n + kGenerated);
  }
  for (const int n : arguments.integers("--sequences", "1,4,16,64")) {
    if (n <= 0) continue;
    options.tests.push_back({Test::Kind::kSequences, n});
    options.most_sequences = std::max(options.most_sequences, n);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  if (arguments.has("--own-memory")) return print_own_memory(arguments);
  const Options options = options_of(arguments);
  std::vector<std::string> models = arguments.all("--model");
  if (models.empty()) models = {(assay_home() / "models/SmolLM2-135M-Instruct.Q4_1.gguf").string()};
  std::vector<Figure> figures;
  for (const std::string& model : models) {
    if (const auto done = Comparison(options, model, figures).run(); !done) {
      fmt::print(stderr, "{}\n", done.error().message());
      return 1;
    }
  }
  return print(figures, arguments.has("--json"));
}
