// The default quality text: the built-in prompts, continued by the reference itself.
#pragma once

#include <functional>

#include "base/error.h"
#include "engine/loaded_model.h"
#include "quality/text.h"

namespace assay {

// Each prompt is rendered (chat ones through the template, where there is one), continued by up to
// `n_continue` tokens sampled at temperature 1, top-p 0.95, from `seed`, and scored from its second token on.
// Prompts that the context cannot hold are left out. progress: share done; return false to stop (kCancelled).
Result<QualityText> continue_prompts(const LoadedModel& reference, uint64_t seed, int n_continue,
                                     const std::function<bool(double)>& progress);

}  // namespace assay
