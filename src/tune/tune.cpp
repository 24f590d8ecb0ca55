#include "tune/tune.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/units.h"
#include "engine/canary.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "engine/speed.h"
#include "hardware/memory.h"
#include "modelfile/weight_kind.h"
#include "plan/choice.h"
#include "plan/verdict.h"
#include "probe/fingerprint.h"
#include "probe/read_rate.h"
#include "quality/reference.h"
#include "tune/calibrated_model.h"
#include "tune/candidates.h"
#include "tune/measurement_store.h"
#include "tune/model_identity.h"
#include "tune/reference_text.h"

namespace assay {
namespace {

constexpr int kMaxBatchTokens = 512;
constexpr int kContinuationTokens = 32;
constexpr int kWindowTokens = 512;
constexpr int kSpeedRepetitions = 5;
constexpr int kDecodeSteps = 16;

std::unexpected<Error> stopped() {
  return fail(ErrorCode::kCancelled, "tune", "stopped; a rerun goes on from here");
}

// Turns "share of the current unit" into "share of all work". A unit is about one pass over the quality text.
class Progress {
 public:
  Progress(TuneObserver& observer, double units) : observer_(observer), total_(std::max(units, 1.0)) {}

  // A callback for the next `units` of work.
  bool report(double share_of_unit, double units, const std::string& what) {
    return observer_.on_progress(std::min(1.0, (done_ + share_of_unit * units) / total_), what);
  }
  void finish(double units) { done_ += units; }

 private:
  TuneObserver& observer_;
  double total_;
  double done_ = 0;
};

constexpr double kTextUnits = 2, kReferenceUnits = 2, kSpeedUnits = 0.5, kQualityUnits = 1;
constexpr double kCalibrationUnits = 2;  // of a candidate that needs it

// One run of tune(): what the steps share.
class Run {
 public:
  Run(const TuneOptions& options, TuneObserver& observer, Plan& plan, MeasurementStore store)
      : options_(options), observer_(observer), plan_(plan), store_(std::move(store)) {}

  Result<void> measure_all(const std::vector<Precision>& candidates);

 private:
  Result<std::string> text_key() const;
  std::string key_of(const Precision& precision, const std::string& text_key) const;
  Result<void> prepare_reference(Progress& progress);
  Result<Candidate> measure(const Precision& precision, Progress& progress);
  Result<SpeedRecord> measure_rates(Model& model, Progress& progress, const std::string& what);
  void judge_and_tell(Candidate candidate, bool from_earlier_run);

  const TuneOptions& options_;
  TuneObserver& observer_;
  Plan& plan_;
  MeasurementStore store_;
  std::optional<QualityReference> reference_;
};

Result<std::string> Run::text_key() const {
  if (!options_.contract.text) {
    return fmt::format("prompts:{}:{}:{}", built_in_prompts().size(), kContinuationTokens,
                       options_.contract.search.seed);
  }
  ASSIGN_OR_RETURN(const std::string text, read_file(*options_.contract.text));
  return fmt::format("file:{:016x}", XXH64(text.data(), text.size(), 0));
}

std::string Run::key_of(const Precision& precision, const std::string& text_key) const {
  const Workload& workload = options_.contract.workload;
  return fmt::format(
      "{}|{}|{}|{}|{}/{}/{}|{}|{}", plan_.model.hash, to_string(precision), text_key, plan_.provenance.commit,
      workload.prompt_tokens, workload.output_tokens, workload.concurrency, plan_.machine.cpu_model,
      options_.isa + ":" + std::to_string(options_.threads) + (options_.pin_threads ? ":pinned" : ""));
}

Result<void> Run::prepare_reference(Progress& progress) {
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend,
                   make_cpu_backend(options_.isa, options_.threads, options_.pin_threads));
  ASSIGN_OR_RETURN(
      const LoadedModel loaded,
      LoadedModel::load(options_.model, reference_precision(), std::move(backend),
                        {.max_batch_tokens = kMaxBatchTokens, .max_context = 0, .progress = {}}));
  QualityText text;
  if (options_.contract.text) {
    ASSIGN_OR_RETURN(const std::string content, read_file(*options_.contract.text));
    ASSIGN_OR_RETURN(text,
                     make_windows(*loaded.tokenizer(), content, *options_.contract.text, kWindowTokens, 0));
  } else {
    ASSIGN_OR_RETURN(
        text, continue_prompts(loaded, options_.contract.search.seed, kContinuationTokens, [&](double share) {
          return progress.report(share, kTextUnits, "reference continues the prompts");
        }));
  }
  progress.finish(kTextUnits);
  ASSIGN_OR_RETURN(
      reference_, QualityReference::record(loaded.model(), std::move(text), [&](int64_t done, int64_t total) {
        return progress.report(static_cast<double>(done) / static_cast<double>(total), kReferenceUnits,
                               "reference pass (f32)");
      }));
  progress.finish(kReferenceUnits);
  const TextSource source = reference_->text().source();
  observer_.on_note(fmt::format("reference  {}: {} sequences, {} tokens, {} positions scored", source.name,
                                source.n_sequences, source.n_tokens, source.n_scored));
  return {};
}

// Samples of `figure` turned into seconds for `tokens` tokens.
Samples seconds_for(double tokens, const SpeedFigure& figure) {
  return {.median = tokens / figure.median,
          .low = tokens / figure.max,
          .high = tokens / figure.min,
          .n = static_cast<int>(figure.runs.size())};
}

Samples samples_of(const SpeedFigure& figure) {
  return {.median = figure.median,
          .low = figure.min,
          .high = figure.max,
          .n = static_cast<int>(figure.runs.size())};
}

Result<SpeedRecord> Run::measure_rates(Model& model, Progress& progress, const std::string& what) {
  const Workload& workload = options_.contract.workload;
  SpeedOptions options;
  options.prompt_tokens = workload.prompt_tokens;
  options.context_tokens = workload.prompt_tokens;
  options.decode_steps = std::min(workload.output_tokens, kDecodeSteps);
  options.batch = {workload.concurrency};
  options.repetitions = kSpeedRepetitions;
  options.step_token_budget = kMaxBatchTokens;
  options.progress = [&](double share) { return progress.report(share, kSpeedUnits, what + ": speed"); };
  ASSIGN_OR_RETURN(const Speed speed, measure_speed(model, options));
  const SpeedFigure& prefill = speed.prefill_tokens_per_second;
  const SpeedFigure& decode = speed.decode.front().tokens_per_second;
  return SpeedRecord{.precision = model.precision(),
                     .backend = model.backend().name(),
                     .prompt_tokens = workload.prompt_tokens,
                     .context_tokens = workload.prompt_tokens,
                     .concurrency = workload.concurrency,
                     .prefill_tokens_per_second = samples_of(prefill),
                     .decode_tokens_per_second = samples_of(decode),
                     .ttft_seconds = seconds_for(workload.prompt_tokens, prefill),
                     .tpot_seconds = seconds_for(workload.concurrency, decode)};
}

MemoryRecord account_memory(const Model& model, const Workload& workload) {
  const KvLayout layout = model.kv_layout();
  const int64_t tokens = int64_t{workload.prompt_tokens} + workload.output_tokens;
  const int64_t pages = ceil_div(tokens, layout.page_tokens) * workload.concurrency;
  return {.weight_bytes = model.weight_bytes(),
          .kv_bytes = static_cast<uint64_t>(pages) * layout.block_bytes(),
          .workspace_bytes = model.workspace_bytes(),
          .kv_bytes_per_token = layout.bytes_per_token()};
}

// What serve compares its first answer with.
Result<CanaryRecord> record_canary(const LoadedModel& loaded) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::create(loaded.model(), loaded.tokenizer(),
                     {.max_sequences = 1, .step_token_budget = kMaxBatchTokens, .prefix_cache = false}));
  ASSIGN_OR_RETURN(CanaryAnswer answer, ask_canary(*engine));
  return CanaryRecord{loaded.model()->backend().name(), std::move(answer.tokens)};
}

Result<Candidate> Run::measure(const Precision& precision, Progress& progress) {
  const std::string what = to_string(precision);
  if (!progress.report(0, 0, what + ": loading")) return stopped();
  Candidate candidate;
  candidate.precision = precision;
  ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend,
                   make_cpu_backend(options_.isa, options_.threads, options_.pin_threads));
  CalibrationSource source;
  source.progress = [&](const std::string& doing, double share) {
    return progress.report(share, kCalibrationUnits, what + ": " + doing);
  };
  const auto loaded =
      load_calibrated(options_.model, precision, std::move(backend),
                      {.max_batch_tokens = kMaxBatchTokens, .max_context = 0, .progress = {}}, source);
  if (!loaded) {
    candidate.failure = loaded.error().message();
    progress.finish(kSpeedUnits + kQualityUnits);
    return candidate;
  }
  Model& model = *loaded->model();
  candidate.effective = describe_effective_precision(model);
  candidate.memory = account_memory(model, options_.contract.workload);
  auto speed = measure_rates(model, progress, what);
  if (!speed) return std::unexpected(speed.error());
  candidate.speed = std::move(*speed);
  progress.finish(kSpeedUnits);
  ASSIGN_OR_RETURN(candidate.canary, record_canary(*loaded));

  auto quality = reference_->compare(model, [&](int64_t done, int64_t total) {
    return progress.report(static_cast<double>(done) / static_cast<double>(total), kQualityUnits,
                           what + ": quality");
  });
  if (!quality) return std::unexpected(quality.error());
  candidate.quality = std::move(*quality);
  progress.finish(kQualityUnits);
  return candidate;
}

void Run::judge_and_tell(Candidate candidate, bool from_earlier_run) {
  judge(options_.contract, candidate);
  plan_.candidates.push_back(std::move(candidate));
  observer_.on_candidate(plan_.candidates.back(), from_earlier_run);
}

Result<void> Run::measure_all(const std::vector<Precision>& candidates) {
  ASSIGN_OR_RETURN(const std::string text, text_key());
  std::vector<std::optional<Candidate>> known(candidates.size());
  size_t n_missing = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!options_.fresh) known[i] = store_.find(key_of(candidates[i], text));
    n_missing += !known[i];
  }
  const double units = n_missing == 0 ? 0
                                      : kTextUnits + kReferenceUnits +
                                            static_cast<double>(n_missing) * (kSpeedUnits + kQualityUnits);
  Progress progress(observer_, units);
  if (n_missing > 0) RETURN_IF_ERROR(prepare_reference(progress));
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (known[i]) {
      judge_and_tell(std::move(*known[i]), true);
      continue;
    }
    ASSIGN_OR_RETURN(Candidate candidate, measure(candidates[i], progress));
    RETURN_IF_ERROR(store_.keep(key_of(candidates[i], text), candidate));
    judge_and_tell(std::move(candidate), false);
  }
  return {};
}

// The reference in f32 must fit beside the largest candidate (bf16); refused before anything is loaded.
Result<void> check_memory(const ModelConfig& config, const Checkpoint& checkpoint) {
  uint64_t values = 0;
  for (const Tensor& tensor : checkpoint.tensors()) values += static_cast<uint64_t>(tensor.n_values());
  const uint64_t needed = values * 6;  // 4 bytes for the reference, 2 for a candidate
  const auto memory = read_memory();
  if (memory && memory->available_bytes < needed) {
    return fail(ErrorCode::kResourceExhausted, config.name,
                "tuning needs about {} (f32 reference and one candidate), {} is available",
                format_bytes(needed), format_bytes(memory->available_bytes));
  }
  return {};
}

Result<void> check_workload(const ModelConfig& config, const Workload& workload) {
  if (workload.prompt_tokens + workload.output_tokens > config.context_length) {
    return fail(ErrorCode::kInvalidArgument, "workload",
                "prompt_tokens + output_tokens is {}, the model's context is {}",
                workload.prompt_tokens + workload.output_tokens, config.context_length);
  }
  return {};
}

}  // namespace

Result<Plan> tune(const TuneOptions& options, TuneObserver& observer) {
  Plan plan;
  plan.contract = options.contract;
  plan.provenance = make_provenance(options.contract.search.seed, options.command);
  plan.machine = fingerprint();
  ASSIGN_OR_RETURN(plan.model, identify_model(options.model));
  std::vector<Precision> candidates = options.contract.search.candidates;
  {
    ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.model));
    ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::read(checkpoint));
    RETURN_IF_ERROR(check_workload(config, options.contract.workload));
    RETURN_IF_ERROR(check_memory(config, checkpoint));
    observer.on_note(fmt::format("model      {} ({}, {} layers, {} wide, {})", config.name,
                                 config.architecture, config.n_layers, config.n_embedding,
                                 format_bytes(plan.model.file_bytes)));
    if (candidates.empty()) candidates = default_candidates(holds_integer_weights(checkpoint));
  }
  ASSIGN_OR_RETURN(const double bandwidth, measure_read_rate({.n_threads = options.threads}));
  plan.machine.read_bytes_per_second = bandwidth;
  observer.on_note(fmt::format("machine    {}, {} CPUs, {}, reads {:.1f} GB/s", plan.machine.cpu_model,
                               plan.machine.cpus, format_bytes(plan.machine.memory_bytes), bandwidth * 1e-9));

  ASSIGN_OR_RETURN(MeasurementStore store, MeasurementStore::open(options.measurements));
  Run run(options, observer, plan, std::move(store));
  RETURN_IF_ERROR(run.measure_all(candidates));
  mark_frontier(plan.candidates);
  if (const auto chosen = choose(plan.candidates, options.contract.search)) {
    plan.ladder = make_ladder(plan.candidates, options.contract, *chosen);
  }
  return plan;
}

}  // namespace assay
