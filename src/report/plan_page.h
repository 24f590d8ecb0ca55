// One self-contained HTML page for a plan: the choice and why, the table of candidates, quality against time,
// error by layer, the ladder, the machine. No script, no request to any other place; readable in print and on
// a phone. Pure; thread safe.
#pragma once

#include <string>

#include "records/plan.h"

namespace assay {

std::string plan_page(const Plan& plan);

}  // namespace assay
