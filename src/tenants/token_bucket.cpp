#include "tenants/token_bucket.h"

#include <algorithm>
#include <limits>

namespace assay {
namespace {

constexpr double kSecondsPerMinute = 60;

}  // namespace

TokenBucket::TokenBucket(double per_minute, double now_seconds)
    : per_minute_(per_minute), level_(per_minute), settled_at_(now_seconds) {}

double TokenBucket::available(double now_seconds) const {
  if (!limited()) return std::numeric_limits<double>::infinity();
  const double elapsed = std::max(0.0, now_seconds - settled_at_);
  return std::min(per_minute_, level_ + elapsed * per_minute_ / kSecondsPerMinute);
}

double TokenBucket::seconds_until(double amount, double now_seconds) const {
  if (!limited()) return 0;
  const double missing = std::min(amount, per_minute_) - available(now_seconds);
  return std::max(0.0, missing) * kSecondsPerMinute / per_minute_;
}

double TokenBucket::seconds_until_full(double now_seconds) const {
  return seconds_until(per_minute_, now_seconds);
}

void TokenBucket::settle(double now_seconds) {
  if (limited()) level_ = available(now_seconds);
  settled_at_ = std::max(settled_at_, now_seconds);
}

void TokenBucket::take(double amount, double now_seconds) {
  settle(now_seconds);
  level_ -= amount;
}

void TokenBucket::give_back(double amount, double now_seconds) {
  settle(now_seconds);
  level_ = std::min(per_minute_, level_ + amount);
}

void TokenBucket::change_rate(double per_minute, double now_seconds) {
  const bool was_limited = limited();
  settle(now_seconds);
  level_ = was_limited ? std::min(level_, per_minute) : per_minute;
  per_minute_ = per_minute;
}

}  // namespace assay
