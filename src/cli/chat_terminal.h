// The interactive part of `assay run`: reads lines, streams answers, knows a few commands.
#pragma once

#include "cli/interrupt.h"
#include "cli/sampling_options.h"
#include "engine/chat_session.h"
#include "engine/engine.h"

namespace assay {

// Until /exit or the end of the input; returns the exit code. Prompts are shown only on a terminal, so that
// questions can be piped in, one a line.
int chat_in_terminal(Engine& engine, ChatSession& session, const SamplingOptions& options,
                     InterruptFlag& interrupt);

}  // namespace assay
