// SIGINT and SIGTERM as something to wait for: the first asks for an orderly end, the second ends the process
// at once with 128 + its number. One at a time per process. wait() may be called from one thread.
#pragma once

#include "base/error.h"

namespace assay {

class ShutdownSignals {
 public:
  static Result<ShutdownSignals> install();

  ShutdownSignals(ShutdownSignals&& other) noexcept;
  ShutdownSignals& operator=(ShutdownSignals&&) = delete;
  ~ShutdownSignals();  // restores the previous handlers

  // Blocks until the first signal; returns its number.
  int wait() const;

 private:
  explicit ShutdownSignals(int read_end) : read_end_(read_end) {}
  int read_end_ = -1;
};

}  // namespace assay
