// Rules that spell the numbers of an interval, digit by digit. Numbers have no exponent here. Integers stay
// within 18 digits; numbers with a fraction within 15 significant digits, so that a decimal that lies in the
// interval is also read as a double that does. Cost: states in proportion to digits squared.
#pragma once

#include <optional>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/json_rules.h"
#include "grammar/schema.h"

namespace assay::grammar {

// `low` and `high` absent: no bound on that side. kNone when nothing lies between them.
RuleId add_integer_range(AutomatonBuilder& builder, const std::optional<NumberBound>& low,
                         const std::optional<NumberBound>& high);
RuleId add_number_range(AutomatonBuilder& builder, const std::optional<NumberBound>& low,
                        const std::optional<NumberBound>& high);

}  // namespace assay::grammar
