// The `assay` program: a table of subcommands. Everything else lives in the libraries.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "cli/command.h"

namespace assay {
namespace {

constexpr std::array kCommands = {
    Command{"tune", "measure precisions against a contract and choose one",
            "assay tune contracts/default.toml --output plan.json", configure_tune_command},
    Command{"serve", "serve a model over the OpenAI API, held to a plan",
            "assay serve --plan plan.json\n  assay serve --model smollm2-135m --weights int8 --port 8080",
            configure_serve_command},
    Command{"run", "chat in the terminal, or one answer with --prompt",
            "assay run smollm2-135m --prompt \"Why is the sky blue?\" --temperature 0",
            configure_run_command},
    Command{"quality", "measure how far a precision is from the checkpoint in f32",
            "assay quality smollm2-135m --weights int8 --kv int8", configure_quality_command},
    Command{"inspect", "show what is in a checkpoint", "assay inspect smollm2-135m",
            configure_inspect_command},
    Command{"pull", "fetch a model", "assay pull smollm2-135m", configure_pull_command},
    Command{"completion", "print a shell completion script", "assay completion bash > ~/.assay-completion",
            configure_completion_command},
};

std::string version_text() {
  const BuildInfo info = build_info();
  return fmt::format("assay {} ({}, {}, {})", info.version, info.commit, info.compiler, info.build_type);
}

int run(int argc, char** argv) {
  CLI::App app(
      "assay: serves language models at the precision a contract allows, and proves it by measurement",
      "assay");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Start with:  assay tune contract.toml   then   assay serve --plan plan.json");

  std::vector<std::pair<CLI::App*, Run>> runs;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(fmt::format("Example:\n  {}", command.example));
    runs.emplace_back(sub, command.configure(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    app.exit(error);
    return asked ? kExitDone : kExitUsage;
  }
  for (const auto& [sub, command] : runs) {
    if (sub->parsed()) return command();
  }
  return kExitUsage;
}

}  // namespace

int report_error(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "assay: error: %s\n", error.message().c_str());
  return error.code == ErrorCode::kCancelled ? kExitInterrupted : kExitFailed;
}

}  // namespace assay

int main(int argc, char** argv) {
  try {
    return assay::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "assay: error: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay: internal error: %s\n", error.what());
  }
  return assay::kExitFailed;
}
