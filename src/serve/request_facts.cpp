#include "serve/request_facts.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace assay {

std::string_view name(Outcome outcome) {
  constexpr std::array<std::string_view, 11> kNames = {
      "stop",          "length",      "cancelled", "error",       "refused_queue", "refused_deadline",
      "refused_limit", "refused_key", "invalid",   "unavailable", "done"};
  static_assert(kNames.size() == static_cast<size_t>(Outcome::kCount));
  CHECK(outcome < Outcome::kCount);
  return kNames[static_cast<size_t>(outcome)];
}

Outcome outcome_of(int status, std::string_view error_code) {
  constexpr std::array<std::pair<std::string_view, Outcome>, 8> kByCode = {{
      {"queue_full", Outcome::kRefusedQueue},
      {"grammars_full", Outcome::kRefusedQueue},
      {"deadline_unreachable", Outcome::kRefusedDeadline},
      {"rate_limit_exceeded", Outcome::kRefusedLimit},
      {"invalid_api_key", Outcome::kRefusedKey},
      {"starting", Outcome::kUnavailable},
      {"shutting_down", Outcome::kUnavailable},
      {"too_many_connections", Outcome::kUnavailable},
  }};
  for (const auto& [code, outcome] : kByCode) {
    if (code == error_code) return outcome;
  }
  if (status < 400) return Outcome::kDone;
  if (status == 499) return Outcome::kCancelled;
  if (status == 429) return Outcome::kRefusedLimit;
  return status < 500 ? Outcome::kInvalid : Outcome::kError;
}

std::string_view operation_of(std::string_view method, std::string_view route) {
  if (method != "POST") return {};
  if (route == "/v1/chat/completions") return "chat";
  if (route == "/v1/completions") return "text_completion";
  if (route == "/v1/embeddings") return "embeddings";
  return {};
}

}  // namespace assay
