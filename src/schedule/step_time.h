// How long a step takes, learned from the steps that were run, and what follows: how many prompt tokens may
// run beside decodes, and when a new request would have its first token.
//
// Model: a step of n decodes takes a + b n seconds (least squares over the latest decode steps, older ones
// forgotten); each prompt token adds c (average over the latest prompt tokens). Attention's growth with the
// context is not in the model: it is slow against the forgetting. Without any observation, no bound binds.
//
// Thread safety: plain values; one thread. Cost: O(1).
#pragma once

#include <cstdint>
#include <span>

namespace assay {

class StepTimeModel {
 public:
  void observe(int64_t n_decodes, int64_t n_prompt_tokens, double seconds);

  double decode_step_seconds(int64_t n_decodes) const;             // 0 until a decode step was seen
  double prompt_token_seconds() const { return prompt_seconds_; }  // 0 until a prompt was seen

  // Prompt tokens that a step with `n_decodes` may have for its time to stay within `bound_seconds`; at least
  // `least`, so that prompts get on whatever the bound; at most `most`.
  int64_t prompt_tokens_within(double bound_seconds, int64_t n_decodes, int64_t least, int64_t most) const;

 private:
  double slope() const;          // b
  double fixed_seconds() const;  // a

  // Exponentially forgotten sums of 1, n, n n, y, n y over decode steps.
  double s0_ = 0, sn_ = 0, snn_ = 0, sy_ = 0, sny_ = 0;
  double prompt_seconds_ = 0;
  double prompt_tokens_ = 0;  // that the average is over
};

// What is known of the sequences of one tenant and class.
struct QueueRow {
  int32_t tenant = 0;
  int service_class = 0;
  int64_t n_running = 0;
  int64_t n_waiting = 0;
  int64_t prompt_tokens_left = 0;  // of both
};

struct QueueForecast {
  int64_t max_running = 1;
  double slot_seconds = 0;    // how long a sequence holds its slot, mean of the latest; 0: not known
  double bound_seconds = 0;   // what prompt chunks keep steps within
  int64_t step_tokens = 512;  // at most, in one step
};

// From now to the first token of a request with `prompt_tokens` to compute, behind those of `rows` that would
// be served before it: equal or lower class, and of other tenants in its class only those with no more
// service than its own. Optimistic where nothing is known yet.
double expected_ttft(int64_t prompt_tokens, int32_t tenant, int service_class, std::span<const QueueRow> rows,
                     std::span<const double> tenant_service, const QueueForecast& queue,
                     const StepTimeModel& times);

}  // namespace assay
