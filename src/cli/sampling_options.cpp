#include "cli/sampling_options.h"

#include <CLI/CLI.hpp>
#include <random>
#include <utility>

namespace assay {

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
  SamplingParams& params = options.params;
  app.add_option("--temperature", params.temperature, "0: greedy; higher: more varied")
      ->capture_default_str();
  app.add_option("--top-k", params.top_k, "draw from that many best tokens; 0: off")->capture_default_str();
  app.add_option("--top-p", params.top_p, "draw from the best tokens that hold this share")
      ->capture_default_str();
  app.add_option("--min-p", params.min_p, "drop tokens below this share of the best one's")
      ->capture_default_str();
  app.add_option("--repetition-penalty", params.repetition_penalty, "above 1: avoid tokens already seen")
      ->capture_default_str();
  app.add_option("--presence-penalty", params.presence_penalty, "-2 to 2, for tokens already generated")
      ->capture_default_str();
  app.add_option("--frequency-penalty", params.frequency_penalty,
                 "-2 to 2, for each time a token was generated")
      ->capture_default_str();
  app.add_option_function<uint64_t>(
      "--seed",
      [&options](uint64_t seed) {
        options.seed = seed;
        options.seed_given = true;
      },
      "same seed, same answer; default: drawn anew");
  app.add_option("--max-tokens", options.max_tokens, "longest answer; -1: as long as the context allows")
      ->capture_default_str();
  app.add_option("--stop", options.stop, "the answer ends before this text; may be given again")
      ->allow_extra_args(false);
  app.add_option("--logprobs", params.top_logprobs,
                 "with --json: log-probabilities of that many best tokens, up to 20")
      ->check(CLI::Range(0, 20));
  app.add_flag("--ignore-eos", options.ignore_end, "go on after the model says it is done");
}

GenerationRequest request_of(const SamplingOptions& options, std::vector<int32_t> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = options.params;
  // Small enough to be typed again, and for JSON readers that keep 53 bits.
  request.sampling.seed = options.seed_given ? options.seed : std::random_device{}() & 0x7fffffff;
  request.max_tokens = options.max_tokens;
  request.stop = options.stop;
  request.ignore_end_of_generation = options.ignore_end;
  return request;
}

}  // namespace assay
