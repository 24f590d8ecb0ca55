// A compiled PCRE2 pattern (UTF, UCP, JIT) with match limits. The only place that knows PCRE2.
// Thread safety: const methods may run in parallel, each with its own Matches.
// Failure: compile() only; a match that exceeds its limits counts as "no match".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace assay::tokenizer_internal {

class Regex {
 public:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };
  // Room for one match; one per thread at a time.
  class Matches;

  // `pattern` in PCRE2's dialect. Syntax errors are kCorrupt.
  static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // The first match at or after `at` in `text`, which must be valid UTF-8.
  std::optional<Span> find(std::string_view text, size_t at, Matches& matches) const;

 private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

class Regex::Matches {
 public:
  Matches();
  ~Matches();
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;

 private:
  friend class Regex;
  void* data_;  // pcre2_match_data; null when memory is exhausted, and then nothing matches
};

}  // namespace assay::tokenizer_internal
