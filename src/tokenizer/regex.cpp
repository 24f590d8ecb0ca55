#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <utility>

namespace assay::tokenizer_internal {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;   // backtracking steps for one match
constexpr uint32_t kHeapLimitKib = 64 * 1024;  // memory for one match that runs without JIT

pcre2_match_data* match_data(void* data) {
  return static_cast<pcre2_match_data*>(data);
}

std::string_view describe(int code, std::array<char, 256>& room) {
  const int length = pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(room.data()), room.size());
  return length < 0 ? "unknown error" : std::string_view(room.data(), static_cast<size_t>(length));
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  bool jit = false;

  ~Compiled() {
    pcre2_code_free(code);
    pcre2_match_context_free(context);
  }
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Regex::Matches::Matches() : data_(pcre2_match_data_create(1, nullptr)) {}
Regex::Matches::~Matches() {
  pcre2_match_data_free(match_data(data_));
}

Result<Regex> Regex::compile(std::string_view pattern) {
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C;
  auto compiled = std::make_unique<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions,
                                 &error, &offset, nullptr);
  if (compiled->code == nullptr) {
    std::array<char, 256> room{};
    return fail(ErrorCode::kCorrupt, pattern, "not a regular expression, at byte {}: {}", offset,
                describe(error, room));
  }
  compiled->context = pcre2_match_context_create(nullptr);
  if (compiled->context == nullptr) return fail(ErrorCode::kResourceExhausted, pattern, "out of memory");
  pcre2_set_match_limit(compiled->context, kMatchLimit);
  pcre2_set_heap_limit(compiled->context, kHeapLimitKib);
  // Where JIT is not built in or executable memory is refused, the interpreter gives the same matches.
  compiled->jit = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(compiled));
}

std::optional<Regex::Span> Regex::find(std::string_view text, size_t at, Matches& matches) const {
  pcre2_match_data* data = match_data(matches.data_);
  if (data == nullptr) return std::nullopt;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int status = PCRE2_ERROR_JIT_STACKLIMIT;
  if (compiled_->jit) {
    status = pcre2_jit_match(compiled_->code, subject, text.size(), at, 0, data, compiled_->context);
  }
  if (status == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter backtracks on the heap
    status = pcre2_match(compiled_->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                         compiled_->context);
  }
  if (status < 0) return std::nullopt;
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  return Span{span[0], span[1]};
}

}  // namespace assay::tokenizer_internal
