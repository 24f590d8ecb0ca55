#include "cli/serve_canary.h"

#include <fmt/format.h>

#include "engine/canary.h"

namespace assay {
namespace {

// Between formats of prefill and decode; a sound int8 model stays far below, a broken one far above.
constexpr double kFormatSlackNats = 1.0;

const CanaryRecord* record_of(const std::optional<Plan>& plan, Model& model) {
  const Candidate* chosen = plan ? plan->chosen() : nullptr;
  if (chosen == nullptr || !chosen->canary) return nullptr;
  // Another kernel table rounds differently; its answers are not this one's.
  const bool same =
      chosen->canary->backend == model.backend().name() && chosen->precision == model.precision();
  return same ? &*chosen->canary : nullptr;
}

}  // namespace

Result<std::string> try_canary(const LoadedModel& loaded, Engine& engine, const std::optional<Plan>& plan) {
  Model& model = *loaded.model();
  if (loaded.has_template()) {
    // A template that cannot render the plainest conversation would fail every chat.
    const auto rendered = loaded.render({{"user", "Hello"}});
    if (!rendered) return std::unexpected(rendered.error().within("canary"));
  }
  ASSIGN_OR_RETURN(const CanaryAnswer answer, ask_canary(engine));
  const Precision& precision = model.precision();
  const bool one_format = precision.prefill_activations == precision.decode_activations;
  RETURN_IF_ERROR(reread_canary(engine, answer, one_format ? 0 : kFormatSlackNats));
  const CanaryRecord* record = record_of(plan, model);
  if (record == nullptr) return fmt::format("canary of {} tokens agrees with itself", answer.tokens.size());
  RETURN_IF_ERROR(match_canary(answer, record->tokens));
  return fmt::format("canary of {} tokens is the plan's", answer.tokens.size());
}

}  // namespace assay
