#include "telemetry/trace_context.h"

#include <algorithm>
#include <random>
#include <span>

#include "base/random.h"

namespace assay {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kVersionZeroLength = 55;  // 00-<32>-<16>-<2>
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr uint8_t kSampledFlag = 1;
constexpr size_t kTraceStateLimit = 512;

std::string to_hex(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

// Lower case only: upper case is malformed.
bool read_hex(std::string_view text, std::span<uint8_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t high = kDigits.find(text[2 * i]);
    const size_t low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    out[i] = static_cast<uint8_t>(high << 4U | low);
  }
  return true;
}

void fill_randomly(std::span<uint8_t> bytes) {
  static thread_local Random random((uint64_t{std::random_device{}()} << 32U) | std::random_device{}(),
                                    "trace ids");
  do {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i % 8 == 0) word = random.next();
      bytes[i] = static_cast<uint8_t>(word);
      word >>= 8U;
    }
  } while (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; }));
}

}  // namespace

template <size_t kBytes>
bool RandomId<kBytes>::is_set() const {
  return std::ranges::any_of(bytes, [](uint8_t byte) { return byte != 0; });
}

template <size_t kBytes>
std::string RandomId<kBytes>::hex() const {
  return to_hex(bytes);
}

template struct RandomId<16>;
template struct RandomId<8>;

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() < kVersionZeroLength) return std::nullopt;
  std::array<uint8_t, 1> version{};
  std::array<uint8_t, 1> flags{};
  TraceContext context;
  if (!read_hex(header, version) || version[0] == 0xFF) return std::nullopt;
  if (version[0] == 0 && header.size() != kVersionZeroLength) return std::nullopt;
  if (header.size() > kVersionZeroLength && header[kVersionZeroLength] != '-') return std::nullopt;
  for (const size_t dash : {kTraceAt - 1, kSpanAt - 1, kFlagsAt - 1}) {
    if (header[dash] != '-') return std::nullopt;
  }
  if (!read_hex(header.substr(kTraceAt), context.trace.bytes) ||
      !read_hex(header.substr(kSpanAt), context.span.bytes) || !read_hex(header.substr(kFlagsAt), flags)) {
    return std::nullopt;
  }
  if (!context.trace.is_set() || !context.span.is_set()) return std::nullopt;
  context.sampled = (flags[0] & kSampledFlag) != 0;
  return context;
}

std::string format_traceparent(const TraceContext& context) {
  return "00-" + context.trace.hex() + "-" + context.span.hex() + (context.sampled ? "-01" : "-00");
}

bool is_valid_tracestate(std::string_view header) {
  return !header.empty() && header.size() <= kTraceStateLimit &&
         std::ranges::all_of(header, [](char c) { return c >= ' ' && c <= '~'; });
}

TraceId make_trace_id() {
  TraceId id;
  fill_randomly(id.bytes);
  return id;
}

SpanId make_span_id() {
  SpanId id;
  fill_randomly(id.bytes);
  return id;
}

bool is_sampled(const TraceId& trace, double rate) {
  uint64_t random = 0;
  for (size_t i = 9; i < trace.bytes.size(); ++i) random = random << 8U | trace.bytes[i];
  return static_cast<double>(random) < rate * 0x1p56;
}

}  // namespace assay
