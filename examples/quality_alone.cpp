// The divergence of two next-token distributions, from their logits.
#include <cstdio>
#include <vector>

#include "quality/divergence.h"

int main() {
  const std::vector<float> reference = {2.0F, 1.0F, 0.5F, -1.0F};
  const std::vector<float> candidate = {1.9F, 1.1F, 0.5F, -1.2F};
  const assay::Divergence divergence = assay::compare_logits(reference, candidate, /*next=*/1, /*top_k=*/2);
  std::printf("KL %.6f nats, same top token: %s, top-2 overlap %.0f %%\n", divergence.kl,
              divergence.same_top ? "yes" : "no", divergence.top_k_overlap * 100);
  return 0;
}
