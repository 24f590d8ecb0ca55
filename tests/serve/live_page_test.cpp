// The live page, its parts and its data.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "serve/live_sample.h"
#include "serve/live_state.h"
#include "serve/served.h"
#include "serve/web_assets.h"

namespace assay {
namespace {

using testing::eventually;
using testing::json_of;
using testing::RawResponse;
using testing::Served;
using testing::text_at;
namespace json = boost::json;

RawResponse get_with(const Served& served, const std::string& path, const std::string& headers) {
  return served.ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
}

TEST(PageCells, letters_follow_the_states) {
  using enum KvPageState;
  const PageCells cells = to_cells({kFree, kCached, kUsed, kShared}, 4);
  EXPECT_EQ(cells.pages_per_cell, 1);
  EXPECT_EQ(cells.cells, "fcus");
  EXPECT_EQ(to_cells({}, 4).cells, "");
}

TEST(PageCells, large_map_is_folded_and_nothing_in_use_is_hidden) {
  std::vector<KvPageState> pages(1001, KvPageState::kFree);
  pages[999] = KvPageState::kCached;
  pages[1000] = KvPageState::kShared;
  pages[0] = KvPageState::kUsed;
  const PageCells cells = to_cells(pages, 100);
  EXPECT_EQ(cells.pages_per_cell, 11);
  ASSERT_EQ(cells.cells.size(), 91U);
  EXPECT_EQ(cells.cells.front(), 'u');
  EXPECT_EQ(cells.cells.back(), 's');
  EXPECT_EQ(std::ranges::count(cells.cells, 'f'), 89);
}

TEST(LiveSample, figures_are_differences_over_the_time_between) {
  EngineStats before;
  before.generated_tokens_total = 100;
  before.prompt_tokens_total = 1000;
  before.prompt_tokens_cached_total = 500;
  before.prefix_tokens_asked_total = 10;
  before.prefix_tokens_found_total = 10;
  before.prefill_steps_total = 1;
  before.prefill_seconds_total = 1;
  EngineStats now = before;
  now.generated_tokens_total += 60;
  now.prompt_tokens_total += 300;
  now.prompt_tokens_cached_total += 100;
  now.prefix_tokens_asked_total += 40;
  now.prefix_tokens_found_total += 10;
  now.prefill_steps_total += 4;
  now.prefill_seconds_total += 0.5;
  now.running = 3;
  const LiveSample sample = make_sample(1700000000.1234, 2, before, now);
  EXPECT_DOUBLE_EQ(sample.output_tokens_per_second, 30);
  EXPECT_DOUBLE_EQ(sample.prompt_tokens_per_second, 100);
  EXPECT_DOUBLE_EQ(sample.prefix_hit_ratio.value(), 0.25);
  EXPECT_DOUBLE_EQ(sample.prefill_step_seconds.value(), 0.125);
  EXPECT_FALSE(sample.decode_step_seconds.has_value()) << "no such step";
  const json::array row = to_row(sample);
  ASSERT_EQ(row.size(), sample_columns().size());
  EXPECT_EQ(row[0].to_number<double>(), 1700000000.123);
  EXPECT_TRUE(row[3].is_null());
  EXPECT_TRUE(row.back().is_null());
}

TEST(LiveSample, totals_that_fall_or_a_time_of_nothing_give_no_nonsense) {
  EngineStats before;
  before.generated_tokens_total = 100;
  const LiveSample sample = make_sample(0, 0, before, {});
  EXPECT_EQ(sample.output_tokens_per_second, 0);
  EXPECT_FALSE(sample.prefix_hit_ratio.has_value());
}

TEST(LivePage, page_comes_with_its_parts_and_nothing_from_elsewhere) {
  const Served served;
  const RawResponse page = served.get("/");
  ASSERT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  const std::string policy = page.headers.at("content-security-policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
  std::set<std::string> named;
  for (size_t at = page.body.find("/web/"); at != std::string::npos; at = page.body.find("/web/", at + 1)) {
    named.insert(page.body.substr(at, page.body.find('"', at) - at));
  }
  EXPECT_EQ(named, (std::set<std::string>{"/web/icon.svg", "/web/page.css", "/web/page.js"}));
  for (const WebAsset& asset : web_assets()) {
    const RawResponse part = served.get("/web/" + std::string(asset.name));
    EXPECT_EQ(part.status, 200) << asset.name;
    EXPECT_EQ(part.body, asset.plain) << asset.name;
    if (asset.name == "echarts.js") continue;  // names its licence's address
    std::string text = part.body;
    for (const std::string known : {"http://www.w3.org/2000/svg"}) {
      if (const size_t at = text.find(known); at != std::string::npos) text.erase(at, known.size());
    }
    EXPECT_EQ(text.find("http://"), std::string::npos) << asset.name;
    EXPECT_EQ(text.find("https://"), std::string::npos) << asset.name;
  }
  EXPECT_EQ(served.get("/web/none.js").status, 404);
  EXPECT_EQ(served.get("/web/..%2Fpage.js").status, 404);
}

TEST(LivePage, parts_are_packed_for_those_who_can_and_not_sent_twice) {
  const Served served;
  const RawResponse packed = get_with(served, "/web/page.js", "Accept-Encoding: br, gzip;q=0.8\r\n");
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(packed.headers.at("vary"), "Accept-Encoding");
  EXPECT_EQ(packed.body.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(packed.body.size(), served.get("/web/page.js").body.size());
  for (const char* refusal : {"Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: br\r\n", ""}) {
    EXPECT_FALSE(get_with(served, "/web/page.js", refusal).headers.contains("content-encoding")) << refusal;
  }
  const RawResponse again =
      get_with(served, "/web/page.js",
               "Accept-Encoding: gzip\r\nIf-None-Match: " + std::string(packed.headers.at("etag")) + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  EXPECT_EQ(get_with(served, "/web/page.js", "If-None-Match: \"other\"\r\n").status, 200);
}

TEST(LivePage, state_holds_what_the_page_shows_and_samples_come_once) {
  const Served served;
  ASSERT_EQ(served.chat().status, 200);
  json::value state;
  ASSERT_TRUE(eventually([&] {
    state = json_of(served.get("/debug/state"));
    return state.at("samples").at("rows").as_array().size() >= 2;
  }));
  EXPECT_EQ(text_at(state, "/server/model"), "org/toy");
  EXPECT_EQ(text_at(state, "/server/status"), "ok");
  EXPECT_EQ(text_at(state, "/outcomes/stop"), "1");
  EXPECT_EQ(text_at(state, "/kv_map/cells"),
            std::string(10, 'u') + std::string(5, 'c') + std::string(85, 'f'));
  const auto& samples = state.at("samples");
  EXPECT_EQ(samples.at("first"), 0);
  for (const auto& row : samples.at("rows").as_array()) {
    EXPECT_EQ(row.as_array().size(), samples.at("columns").as_array().size());
  }
  const auto column = [&](std::string_view name) {
    const auto& columns = samples.at("columns").as_array();
    return static_cast<size_t>(std::ranges::find(columns, json::value(json::string(name))) - columns.begin());
  };
  EXPECT_TRUE(samples.at("rows").as_array().back().at(column("ttft_p50")).is_number());
  EXPECT_TRUE(samples.at("rows").as_array().back().at(column("itl_p99")).is_number());
  const auto rest = json_of(served.get("/debug/state?since=0"));
  EXPECT_EQ(rest.at("samples").at("first"), 1);
  const auto none =
      json_of(served.get("/debug/state?since=" + std::to_string(std::numeric_limits<int64_t>::max())));
  EXPECT_TRUE(none.at("samples").at("rows").as_array().empty());
  for (const char* bad : {"since=x", "since=", "since=1x", "since=99999999999999999999"}) {
    EXPECT_EQ(served.get(std::string("/debug/state?") + bad).status, 400) << bad;
  }
}

TEST(LivePage, page_is_for_everyone_its_data_for_those_with_a_key) {
  ServeConfig config;
  config.tenants.push_back({{.name = "acme"}, {digest_of_key("sk-secret")}});
  const Served served({}, std::move(config));
  EXPECT_EQ(served.get("/").status, 200);
  EXPECT_EQ(served.get("/web/page.js").status, 200);
  EXPECT_EQ(served.get("/debug/state").status, 401);
  EXPECT_EQ(get_with(served, "/debug/state", "Authorization: Bearer sk-secret\r\n").status, 200);
  ASSERT_EQ(served
                .ask(Served::post_text("/v1/chat/completions", Served::chat_body(),
                                       "Authorization: Bearer sk-secret\r\n"))
                .status,
            200);
  EXPECT_EQ(served.chat().status, 401);
  const std::string metrics = get_with(served, "/metrics", "Authorization: Bearer sk-secret\r\n").body;
  EXPECT_NE(metrics.find(R"(assay_generation_requests_total{outcome="stop",tenant="acme"} 1)"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find(R"(assay_generation_requests_total{outcome="refused_key",tenant="none"} 1)"),
            std::string::npos);
}

}  // namespace
}  // namespace assay
