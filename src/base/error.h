// Errors as values. Input, file and network failures return Result<T>; the error says where it happened,
// what was expected and what was found. Broken invariants use CHECK (check.h) instead.
// Thread safety: plain values. Cost: the success path of Result<T> is that of T.
#pragma once

#include <fmt/core.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

enum class ErrorCode {
  kInvalidArgument,    // the caller's input is wrong
  kNotFound,           // a file, model, key or route does not exist
  kCorrupt,            // a file or message breaks its format
  kUnsupported,        // well-formed, but outside what assay handles
  kIo,                 // the operating system refused a read or write
  kNetwork,            // the peer is unreachable or broke the protocol
  kResourceExhausted,  // memory, disk, queue or budget is full
  kCancelled,          // the caller asked to stop
  kUnavailable,        // not now: shutting down, overloaded
  kInternal,           // a bug, reported instead of hidden
  kCount
};

// "invalid argument", "not found", ...
std::string_view name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string where;  // the file, field, flag or address that is at fault
  std::string what;   // one clear sentence: expected, found, what to do

  // "where: what", the form shown to users.
  std::string message() const;
  // The same error seen from further out: `outer` is put before `where`.
  Error within(std::string_view outer) const;
};

template <class T>
using Result = std::expected<T, Error>;

// return fail(ErrorCode::kCorrupt, path, "expected magic GGUF, found {:#x}", magic);
template <class... Args>
std::unexpected<Error> fail(ErrorCode code, std::string_view where, fmt::format_string<Args...> format,
                            Args&&... args) {
  return std::unexpected(Error{code, std::string(where), fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace assay

#define ASSAY_CONCAT_INNER(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_INNER(a, b)

// RETURN_IF_ERROR(expression of type Result<...>);
#define RETURN_IF_ERROR(expression)                                   \
  do {                                                                \
    if (auto assay_result = (expression); !assay_result) [[unlikely]] \
      return std::unexpected(std::move(assay_result).error());        \
  } while (false)

// ASSIGN_OR_RETURN(auto value, expression of type Result<T>);
#define ASSIGN_OR_RETURN(target, expression) \
  ASSAY_ASSIGN_OR_RETURN(ASSAY_CONCAT(assay_result_, __LINE__), target, expression)
#define ASSAY_ASSIGN_OR_RETURN(temporary, target, expression) \
  auto temporary = (expression);                              \
  if (!temporary) [[unlikely]]                                \
    return std::unexpected(std::move(temporary).error());     \
  target = std::move(*temporary)
