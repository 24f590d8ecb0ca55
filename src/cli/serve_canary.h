// What must hold before a server says that it is ready: its first answer matches the plan's record of this
// precision, or, without one, what the model itself makes of that answer by another path. Failure: as
// engine/canary.h.
#pragma once

#include <optional>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "records/plan.h"

namespace assay {

// Returns in words what was compared.
Result<std::string> try_canary(const LoadedModel& loaded, Engine& engine, const std::optional<Plan>& plan);

}  // namespace assay
