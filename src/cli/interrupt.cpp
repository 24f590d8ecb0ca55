#include "cli/interrupt.h"

namespace assay {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
}

}  // namespace

InterruptFlag::InterruptFlag() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a read at the prompt returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptFlag::~InterruptFlag() {
  sigaction(SIGINT, &before_, nullptr);
}

bool InterruptFlag::raised() const {
  return interrupted != 0;
}

void InterruptFlag::clear() {
  interrupted = 0;
}

}  // namespace assay
