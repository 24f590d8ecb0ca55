// The messages of a chat request. Source: OpenAI API reference (chat completions). Pure. Failure: ApiError,
// recorded in the reader.
#pragma once

#include <vector>

#include "engine/loaded_model.h"
#include "serve/field_reader.h"

namespace assay {

// `messages`, with roles system, user, assistant, tool; content in parts is joined.
std::vector<ChatMessage> read_messages(FieldReader& fields, int max_messages);

}  // namespace assay
