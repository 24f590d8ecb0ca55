#include "telemetry/trace_context.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

// The example of the recommendation.
constexpr std::string_view kExample = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, example_of_the_recommendation_is_read_and_written) {
  const auto context = parse_traceparent(kExample);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace.hex(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context->span.hex(), "b7ad6b7169203331");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(format_traceparent(*context), kExample);
}

TEST(TraceContext, only_the_sampled_bit_of_the_flags_counts) {
  std::string header(kExample);
  for (const auto& [flags, sampled] :
       {std::pair("00", false), {"01", true}, {"02", false}, {"03", true}, {"ff", true}, {"fe", false}}) {
    header.replace(53, 2, flags);
    const auto context = parse_traceparent(header);
    ASSERT_TRUE(context.has_value()) << flags;
    EXPECT_EQ(context->sampled, sampled) << flags;
  }
}

TEST(TraceContext, later_versions_are_read_as_far_as_they_are_known) {
  std::string header(kExample);
  header.replace(0, 2, "cc");
  EXPECT_TRUE(parse_traceparent(header).has_value());
  EXPECT_TRUE(parse_traceparent(header + "-what-the-future-will-bring").has_value());
  EXPECT_FALSE(parse_traceparent(header + ".no-dash").has_value());
}

TEST(TraceContext, malformed_headers_count_as_absent) {
  const std::string good(kExample);
  const auto with = [&](size_t at, std::string_view text) {
    return std::string(good).replace(at, text.size(), text);
  };
  for (const std::string& header :
       {std::string(), std::string("00"), good + "-more", good + " ", good.substr(0, 54), with(0, "ff"),
        with(0, "0x"), with(2, "_"), with(35, "_"), with(52, "_"), with(3, "0AF7"), with(36, "B7"),
        with(3, "g"), with(40, " "), with(53, "0x"), with(3, "00000000000000000000000000000000"),
        with(36, "0000000000000000"), std::string("\0", 1) + good.substr(1)}) {
    EXPECT_FALSE(parse_traceparent(header).has_value()) << header;
  }
}

TEST(TraceContext, ids_are_set_and_differ) {
  std::set<TraceId> traces;
  std::set<SpanId> spans;
  for (int i = 0; i < 1000; ++i) {
    traces.insert(make_trace_id());
    spans.insert(make_span_id());
    EXPECT_TRUE(make_span_id().is_set());
  }
  EXPECT_EQ(traces.size(), 1000U);
  EXPECT_EQ(spans.size(), 1000U);
  EXPECT_FALSE(TraceId{}.is_set());
}

TEST(TraceContext, share_of_sampled_traces_is_the_rate) {
  constexpr int kTraces = 20000;
  int kept = 0;
  for (int i = 0; i < kTraces; ++i) {
    const TraceId id = make_trace_id();
    EXPECT_TRUE(is_sampled(id, 1));
    EXPECT_FALSE(is_sampled(id, 0));
    if (is_sampled(id, 0.25)) {
      ++kept;
      EXPECT_TRUE(is_sampled(id, 0.5)) << "a higher rate keeps what a lower one keeps";
    }
  }
  // Six standard deviations of a binomial: sqrt(20000 * 0.25 * 0.75) = 61.
  EXPECT_NEAR(kept, kTraces / 4, 6 * 61.3);
}

TEST(TraceContext, trace_state_is_bounded_and_printable) {
  EXPECT_TRUE(is_valid_tracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
  EXPECT_FALSE(is_valid_tracestate(""));
  EXPECT_FALSE(is_valid_tracestate("a=\x01"));
  EXPECT_FALSE(is_valid_tracestate("a=\xC3\xA4"));
  EXPECT_TRUE(is_valid_tracestate(std::string(512, 'a')));
  EXPECT_FALSE(is_valid_tracestate(std::string(513, 'a')));
}

}  // namespace
}  // namespace assay
