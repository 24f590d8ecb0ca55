// A rate limit with a burst of one minute: what flows in a minute is also the most that is kept. What cannot
// be known before (the length of an answer) is taken afterwards and may leave a debt, so that the long-run
// rate is exact whatever the requests. Source: ITU-T I.371 (continuous-state leaky bucket). Time is the
// caller's, in seconds, and should not go back. Not thread safe.
#pragma once

namespace assay {

class TokenBucket {
 public:
  // Full at the start. 0: no limit.
  explicit TokenBucket(double per_minute = 0, double now_seconds = 0);

  bool limited() const { return per_minute_ > 0; }
  double per_minute() const { return per_minute_; }
  // What could be taken now; below zero: a debt. Of a bucket without a limit: infinity.
  double available(double now_seconds) const;
  // Until `amount` is there; more than the bucket holds counts as all that it holds. 0: now.
  double seconds_until(double amount, double now_seconds) const;
  double seconds_until_full(double now_seconds) const;

  void take(double amount, double now_seconds);  // also what is not there
  void give_back(double amount, double now_seconds);
  // Keeps what is there, or the debt, as far as the new limit allows.
  void change_rate(double per_minute, double now_seconds);

 private:
  void settle(double now_seconds);

  double per_minute_;
  double level_;
  double settled_at_;
};

}  // namespace assay
