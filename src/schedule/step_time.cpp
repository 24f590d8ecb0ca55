#include "schedule/step_time.h"

#include <algorithm>

namespace assay {
namespace {

constexpr double kForget = 0.98;        // of a decode step, per later one
constexpr double kPromptMemory = 2000;  // prompt tokens that the average remembers

}  // namespace

void StepTimeModel::observe(int64_t n_decodes, int64_t n_prompt_tokens, double seconds) {
  if (seconds <= 0 || n_decodes + n_prompt_tokens <= 0) return;
  const auto n = static_cast<double>(n_decodes);
  if (n_prompt_tokens == 0) {
    s0_ = s0_ * kForget + 1;
    sn_ = sn_ * kForget + n;
    snn_ = snn_ * kForget + n * n;
    sy_ = sy_ * kForget + seconds;
    sny_ = sny_ * kForget + n * seconds;
    return;
  }
  const auto m = static_cast<double>(n_prompt_tokens);
  // A step of prompts alone pays the fixed part too.
  const double others = n_decodes > 0 ? decode_step_seconds(n_decodes) : fixed_seconds();
  const double own = std::max(seconds - others, seconds * 0.05) / m;
  prompt_tokens_ = std::min(prompt_tokens_ + m, kPromptMemory);
  prompt_seconds_ += std::min(1.0, m / prompt_tokens_) * (own - prompt_seconds_);
}

double StepTimeModel::slope() const {
  const double mean_n = sn_ / s0_, mean_y = sy_ / s0_;
  const double spread = snn_ - sn_ * mean_n;
  // With one batch size only the slope is unknown: half of the time in proportion is as good a guess as any.
  const double slope =
      spread > 1e-6 * snn_ ? (sny_ - sn_ * mean_y) / spread : 0.5 * mean_y / std::max(mean_n, 1.0);
  return std::clamp(slope, 0.0, mean_y / std::max(mean_n, 1.0));
}

double StepTimeModel::fixed_seconds() const {
  return s0_ > 0 ? std::max(0.0, (sy_ - slope() * sn_) / s0_) : 0;
}

double StepTimeModel::decode_step_seconds(int64_t n_decodes) const {
  if (s0_ <= 0 || n_decodes <= 0) return 0;
  const double mean_y = sy_ / s0_;
  return std::max(mean_y + slope() * (static_cast<double>(n_decodes) - sn_ / s0_), 0.1 * mean_y);
}

int64_t StepTimeModel::prompt_tokens_within(double bound_seconds, int64_t n_decodes, int64_t least,
                                            int64_t most) const {
  if (n_decodes == 0 || prompt_seconds_ <= 0 || bound_seconds <= 0) return most;
  const double left = bound_seconds - decode_step_seconds(n_decodes);
  const double tokens = std::clamp(left / prompt_seconds_, 0.0, static_cast<double>(most));
  return std::max(std::min(least, most), static_cast<int64_t>(tokens));
}

double expected_ttft(int64_t prompt_tokens, int32_t tenant, int service_class, std::span<const QueueRow> rows,
                     std::span<const double> tenant_service, const QueueForecast& queue,
                     const StepTimeModel& times) {
  int64_t before_tokens = prompt_tokens, before_waiting = 0, n_held = 0, n_decodes = 0;
  const auto service = [&](int32_t index) { return tenant_service[static_cast<size_t>(index)]; };
  for (const QueueRow& row : rows) {
    n_decodes += row.n_running;
    if (row.service_class > service_class) continue;  // it would give way
    if (row.service_class == service_class && row.tenant != tenant && service(row.tenant) > service(tenant))
      continue;
    n_held += row.n_running;
    before_waiting += row.n_waiting;
    before_tokens += row.prompt_tokens_left;
  }
  n_decodes = std::min(n_decodes, queue.max_running);
  const int64_t chunk = times.prompt_tokens_within(queue.bound_seconds, n_decodes, 1, queue.step_tokens);
  const double per_token =
      times.prompt_token_seconds() +
      times.decode_step_seconds(n_decodes) / static_cast<double>(std::max<int64_t>(chunk, 1));
  const int64_t excess = n_held + before_waiting + 1 - queue.max_running;
  const double slots = static_cast<double>(std::max<int64_t>(excess, 0)) * queue.slot_seconds /
                       static_cast<double>(queue.max_running);
  return slots + static_cast<double>(before_tokens) * per_token;
}

}  // namespace assay
