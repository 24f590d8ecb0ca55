// SIGINT, SIGTERM and SIGHUP as something to wait for. The first of SIGINT and SIGTERM asks for an orderly
// end, the second ends the process at once with 128 + its number; SIGHUP asks for keys and limits to be read
// again, any number of times. One at a time per process. wait() may be called from one thread.
#pragma once

#include "base/error.h"

namespace assay {

class ServeSignals {
 public:
  static Result<ServeSignals> install();

  ServeSignals(ServeSignals&& other) noexcept;
  ServeSignals& operator=(ServeSignals&&) = delete;
  ~ServeSignals();  // restores the previous handlers

  // Blocks until the next signal; returns its number.
  int wait() const;

 private:
  explicit ServeSignals(int read_end) : read_end_(read_end) {}
  int read_end_ = -1;
};

}  // namespace assay
