// Runs a program and waits for it, without a shell: arguments reach it as they are.
// Failure: kNotFound when there is no such program, kIo when it cannot be started. Thread safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace assay {

struct ProcessOutcome {
  int exit_code = 0;   // 128 + signal when it was killed
  std::string output;  // the last 16 KiB of standard output and error together; empty when shown
};

// `show_output`: the program writes to our standard error instead (its progress bar then shows on a
// terminal).
Result<ProcessOutcome> run_program(const std::vector<std::string>& arguments, bool show_output);

// The last line that is not blank.
std::string last_line(const std::string& text);

}  // namespace assay
