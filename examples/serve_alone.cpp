// What the server makes of a request body: a typed request, or OpenAI's error object.
#include <cstdio>

#include "serve/openai_request.h"

int main() {
  const assay::ApiLimits limits{.n_vocab = 49152};
  const auto good = assay::parse_chat_request(
      R"({"model": "default", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8})",
      limits);
  const auto bad = assay::parse_chat_request(
      R"({"model": "default", "messages": [{"role": "user", "content": "Hello!"}], "temperature": -1})",
      limits);
  if (!good || bad) return 1;
  std::printf("read %zu message(s), at most %lld tokens\n", good->messages.size(),
              static_cast<long long>(good->options.max_tokens));
  std::printf("refused with %d: %s\n", bad.error().status, assay::to_json(bad.error()).c_str());
  return 0;
}
