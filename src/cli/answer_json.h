// What `assay run --json` prints: tokens, ids, timings and the precision that really ran.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "cli/answer.h"
#include "engine/loaded_model.h"

namespace assay {

struct AnswerContext {
  const LoadedModel& loaded;
  const GenerationRequest& request;
  double load_seconds = 0;
};

boost::json::object to_json(const Answer& answer, const AnswerContext& context);

}  // namespace assay
