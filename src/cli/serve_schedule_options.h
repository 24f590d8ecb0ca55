// Flags of `assay serve` about who runs when: the pace of streams, batches, waiting, swapping.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine.h"

namespace assay {

struct ServeScheduleOptions {
  std::string itl_bound;
  std::string batch_wait = "0 s";
  std::string patience = "30 s";
  std::string swap_memory;
};

void add_schedule_options(CLI::App& app, ServeScheduleOptions& options);

// Writes what the flags say into the engine's configuration. `contract_tpot_seconds` is the bound of a plan's
// contract, if it has one; --itl-bound wins. kInvalidArgument names the flag.
Result<void> apply_schedule_options(const ServeScheduleOptions& options,
                                    std::optional<double> contract_tpot_seconds, EngineConfig& config);

}  // namespace assay
