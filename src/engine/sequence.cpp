#include "engine/sequence.h"

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>

namespace assay {
namespace {

// Differs from process to process, so that nobody can look for a tenant's name that collides with another's.
uint64_t salt_of(const std::string& tenant) {
  static const std::string secret =
      std::to_string(std::random_device{}()) + std::to_string(std::random_device{}());
  return std::hash<std::string>{}(secret + tenant);
}

}  // namespace

Sequence::Sequence(RequestId request_id, GenerationRequest request, std::shared_ptr<StreamSink> sink,
                   const Tokenizer& tokenizer, KvPool& pool, int64_t longest_tokens, double now)
    : id(request_id),
      tokens(std::move(request.prompt)),
      n_prompt(std::ssize(tokens)),
      share(std::move(request.share)),
      prefix_salt(salt_of(share.tenant)),
      reads_prompt(request.prompt_output.wanted()),
      longest(longest_tokens),
      ignore_end_of_generation(request.ignore_end_of_generation),
      pages(pool),
      constraint(std::move(request.constraint)),
      sampler(std::move(request.sampling), tokens),
      reader(request.prompt_output, tokens),
      stream(tokenizer, tokens, std::move(request.stop), request.keep_special, std::move(sink)),
      waits_since(now),
      submit_time(now) {}

SequenceSlice Sequence::slice(int64_t n) const {
  SequenceSlice slice;
  slice.tokens = std::span(tokens).subspan(static_cast<size_t>(n_computed), static_cast<size_t>(n));
  slice.first_position = static_cast<int32_t>(n_computed);
  slice.blocks = pages.blocks();
  slice.first_wanted = reader.wants(n_computed) ? 0 : static_cast<int32_t>(n - 1);
  slice.n_prompt = static_cast<int32_t>(std::clamp<int64_t>(n_prompt - n_computed, 0, n));
  return slice;
}

Usage Sequence::usage() const {
  Usage usage;
  usage.prompt_tokens = static_cast<int>(n_prompt);
  usage.completion_tokens = static_cast<int>(n_sampled);
  usage.cached_prompt_tokens = static_cast<int>(n_cached_prompt);
  if (started) usage.queue_seconds = start_time - submit_time;
  if (n_sampled > 0) {
    usage.prefill_seconds = first_token_time - start_time;
    usage.decode_seconds = last_token_time - first_token_time;
  }
  return usage;
}

}  // namespace assay
