// Ctrl-C as a flag: while an InterruptFlag lives, SIGINT sets it instead of ending the process, and blocking
// reads return. One at a time.
#pragma once

#include <csignal>

namespace assay {

class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  bool raised() const;
  void clear();

 private:
  struct sigaction before_ = {};
};

}  // namespace assay
