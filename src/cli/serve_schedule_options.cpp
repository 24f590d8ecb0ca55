#include "cli/serve_schedule_options.h"

#include "base/units.h"

namespace assay {
namespace {

Result<double> time_of(const char* flag, const std::string& text) {
  const auto seconds = parse_seconds(text);
  if (!seconds) return std::unexpected(seconds.error().within(flag));
  return *seconds;
}

}  // namespace

void add_schedule_options(CLI::App& app, ServeScheduleOptions& options) {
  app.add_option("--itl-bound", options.itl_bound,
                 "what a stream's next token may wait for the prompts of others, e.g. \"30 ms\": prompts are cut "
                 "to fit; default: the contract's tpot, else 50 ms, or two decode steps where that is more");
  app.add_option("--batch-wait", options.batch_wait,
                 "how long an idle server waits for further requests to start together")
      ->capture_default_str();
  app.add_option("--patience", options.patience,
                 "a request that waits longer is served with the most urgent ones, whatever its priority")
      ->capture_default_str();
  app.add_option("--swap-memory", options.swap_memory,
                 "memory beside the KV cache for pages of requests that have to give theirs up, e.g. \"1 GiB\"; "
                 "default: none, they are computed again");
}

Result<void> apply_schedule_options(const ServeScheduleOptions& options,
                                    std::optional<double> contract_tpot_seconds, EngineConfig& config) {
  config.itl_bound_seconds = contract_tpot_seconds.value_or(0);
  if (!options.itl_bound.empty()) {
    ASSIGN_OR_RETURN(config.itl_bound_seconds, time_of("--itl-bound", options.itl_bound));
    if (!(config.itl_bound_seconds > 0))
      return fail(ErrorCode::kInvalidArgument, "--itl-bound", "must be above zero");
  }
  ASSIGN_OR_RETURN(config.batch_wait_seconds, time_of("--batch-wait", options.batch_wait));
  ASSIGN_OR_RETURN(config.patience_seconds, time_of("--patience", options.patience));
  if (options.swap_memory.empty()) return {};
  const auto bytes = parse_bytes(options.swap_memory);
  if (!bytes) return std::unexpected(bytes.error().within("--swap-memory"));
  config.swap_bytes = *bytes;
  return {};
}

}  // namespace assay
