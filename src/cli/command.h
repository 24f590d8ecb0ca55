// The subcommands of `assay`. Each lives in its own <name>_command.cpp, adds its options to a CLI11 sub-app
// and returns what to run after parsing. Exit codes: 0 done, 1 failed (one line on standard error says why),
// 2 wrong usage, 3 no candidate holds the contract, 130 interrupted.
#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "base/error.h"

namespace assay {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitContractBroken = 3;
inline constexpr int kExitInterrupted = 130;

using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* summary;  // one line, shown in `assay --help`
  const char* example;  // shown at the end of `assay <name> --help`
  Run (*configure)(CLI::App& app);
};

// Prints "assay: error: <message>" on standard error; returns the exit code for it.
int report_error(const Error& error);

Run configure_completion_command(CLI::App& app);
Run configure_inspect_command(CLI::App& app);
Run configure_pull_command(CLI::App& app);
Run configure_quality_command(CLI::App& app);
Run configure_run_command(CLI::App& app);
Run configure_serve_command(CLI::App& app);
Run configure_tune_command(CLI::App& app);

}  // namespace assay
