#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/base64.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::eventually;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;
using testing::text_at;

TenantEntry tenant(TenantPolicy policy) {
  const std::string key = "sk-" + policy.name + "-key";
  return {std::move(policy), {digest_of_key(key)}};
}

ServeConfig with(std::vector<TenantPolicy> policies) {
  ServeConfig config;
  for (TenantPolicy& policy : policies) config.tenants.push_back(tenant(std::move(policy)));
  return config;
}

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

RawResponse get_as(const Served& served, const std::string& path, const std::string& headers) {
  return served.ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
}

RawResponse complete_as(const Served& served, const std::string& key, const std::string& more = "") {
  return served.ask(Served::post_text("/v1/completions", Served::completion_body(more), bearer(key)));
}

std::string header(const RawResponse& response, const std::string& name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "(absent)" : found->second;
}

TEST(Tenants, every_route_but_health_asks_for_a_key) {
  const Served served({}, with({{.name = "a"}}));
  for (const char* path : {"/v1/models", "/v1/models/org/toy", "/metrics", "/version", "/v1/usage"}) {
    const RawResponse refused = served.get(path);
    EXPECT_EQ(refused.status, 401) << path;
    EXPECT_EQ(text_at(json_of(refused), "/error/code"), "invalid_api_key") << path;
    EXPECT_EQ(header(refused, "www-authenticate"), "Bearer realm=\"assay\"") << path;
    EXPECT_EQ(get_as(served, path, bearer("sk-a-key")).status, 200) << path;
  }
  for (const char* path : {"/v1/chat/completions", "/v1/completions"})
    EXPECT_EQ(served.post(path, "{}").status, 401);
  for (const char* path : {"/health", "/health/live", "/health/ready"})
    EXPECT_EQ(served.get(path).status, 200);
  EXPECT_EQ(complete_as(served, "sk-a-key").status, 200);
  EXPECT_TRUE(served.engine->submitted().size() == 1);
}

TEST(Tenants, wrong_credentials_are_refused) {
  const Served served({}, with({{.name = "a"}}));
  const std::vector<std::string> headers = {
      bearer("sk-a-key2"),
      bearer("sk-a-ke"),
      bearer("SK-A-KEY"),
      bearer(""),
      "Authorization: sk-a-key\r\n",
      "Authorization: Bearersk-a-key\r\n",
      "Authorization: Bearer\tsk-a-key\r\n",
      "Authorization: Token sk-a-key\r\n",
      "X-Api-Key: sk-a-key\r\n",
      bearer("sk-a-key") + bearer("sk-a-key"),
      "Authorization: Basic " + encode_base64("sk-a-key") + "\r\n",
      "Authorization: Basic " + encode_base64("sk-a-key:") + "\r\n",
      "Authorization: Basic c2stYS1rZXk\r\n",
      bearer(std::string(8000, 'x')),
  };
  for (const std::string& wrong : headers)
    EXPECT_EQ(get_as(served, "/v1/models", wrong).status, 401) << wrong;
}

TEST(Tenants, basic_credentials_open_pages_and_declared_json_alone) {
  const Served served({}, with({{.name = "a"}}));
  const std::string basic = "Authorization: Basic " + encode_base64("me:sk-a-key") + "\r\n";
  EXPECT_EQ(get_as(served, "/v1/models", basic).status, 200);
  const std::string body = Served::completion_body();
  EXPECT_EQ(served.ask(Served::post_text("/v1/completions", body, basic)).status, 200);
  // As another site's form could send it.
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  for (const char* type : {"", "Content-Type: text/plain\r\n"})
    EXPECT_EQ(served.ask("POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + basic + type + length).status, 401)
        << type;
  const RawResponse page = get_as(served, "/metrics", "Accept: text/html\r\n");
  EXPECT_NE(header(page, "www-authenticate").find("Basic realm="), std::string::npos);
}

TEST(Tenants, rate_limits_answer_429_with_the_time_to_wait) {
  const Served served(
      {}, with({{.name = "a", .requests_per_minute = 2}, {.name = "b", .tokens_per_minute = 20}}));
  const RawResponse first = complete_as(served, "sk-a-key");
  EXPECT_EQ(header(first, "x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(header(first, "x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(header(first, "x-ratelimit-reset-requests"), "30s");
  EXPECT_EQ(header(first, "x-ratelimit-limit-tokens"), "(absent)");
  EXPECT_EQ(complete_as(served, "sk-a-key").status, 200);
  const RawResponse refused = complete_as(served, "sk-a-key");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "rate_limit_exceeded");
  EXPECT_EQ(text_at(json_of(refused), "/error/type"), "rate_limit_error");
  EXPECT_EQ(header(refused, "retry-after"), "30");
  EXPECT_EQ(header(refused, "x-ratelimit-remaining-requests"), "0");
  // 2 tokens of the prompt, 13 of "Hello, world.": 5 are left, of which the next prompt takes 2.
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
  const RawResponse over = complete_as(served, "sk-b-key");
  EXPECT_EQ(over.status, 429);
  EXPECT_EQ(header(over, "retry-after"), "36") << "10 tokens of debt and 2 for the prompt, at 20 a minute";
  EXPECT_EQ(header(over, "x-ratelimit-remaining-tokens"), "0");
  EXPECT_EQ(header(over, "x-ratelimit-reset-tokens"), "1m30s");
}

TEST(Tenants, requests_in_flight_count_until_they_end) {
  const Served served({}, with({{.name = "a", .in_flight_limit = 1}, {.name = "b"}}));
  served.engine->hold();
  RawSocket running(served.server->port());
  running.send(
      Served::post_text("/v1/completions", Served::completion_body(R"("stream":true)"), bearer("sk-a-key")));
  ASSERT_TRUE(eventually([&] { return served.engine->active() == 1; }));
  EXPECT_EQ(complete_as(served, "sk-a-key").status, 429);
  EXPECT_EQ(get_as(served, "/v1/models", bearer("sk-a-key")).status, 200) << "only generation counts";
  served.engine->go_on();
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
  ASSERT_TRUE(eventually([&] { return served.engine->active() == 0; }));
  EXPECT_TRUE(eventually([&] { return complete_as(served, "sk-a-key").status == 200; }));
}

TEST(Tenants, a_client_that_leaves_frees_its_place) {
  const Served served({}, with({{.name = "a", .in_flight_limit = 1}}));
  served.engine->hold();
  {
    RawSocket leaving(served.server->port());
    leaving.send(Served::post_text("/v1/completions", Served::completion_body(), bearer("sk-a-key")));
    ASSERT_TRUE(eventually([&] { return served.engine->active() == 1; }));
  }
  ASSERT_TRUE(eventually([&] { return served.engine->active() == 0; }));
  served.engine->go_on();
  EXPECT_TRUE(eventually([&] { return complete_as(served, "sk-a-key").status == 200; }));
}

TEST(Tenants, refused_by_the_engine_costs_nothing) {
  const Served served({.max_active = 0}, with({{.name = "a", .requests_per_minute = 1}}));
  for (int i = 0; i < 3; ++i) {
    const RawResponse refused = complete_as(served, "sk-a-key");
    EXPECT_EQ(text_at(json_of(refused), "/error/code"), "queue_full");
  }
}

TEST(Tenants, sequences_carry_their_class) {
  const Served served({}, with({{.name = "a", .weight = 3, .priority = 2, .ttft_bound_seconds = 5},
                                {.name = "b", .ttft_bound_seconds = 5, .refuse_late = false}}));
  for (const char* more : {"", R"("priority":7)", R"("priority":-7)"})
    EXPECT_EQ(complete_as(served, "sk-a-key", more).status, 200);
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
  EXPECT_EQ(complete_as(served, "sk-b-key", R"("priority":101)").status, 400);
  const auto submitted = served.engine->submitted();
  ASSERT_EQ(submitted.size(), 4U);
  EXPECT_EQ(submitted[0].share.tenant, "a");
  EXPECT_EQ(submitted[0].share.weight, 3);
  EXPECT_EQ(submitted[0].share.priority, 2);
  EXPECT_EQ(submitted[0].share.ttft_bound_seconds, 5);
  EXPECT_EQ(submitted[1].share.priority, 7);
  EXPECT_EQ(submitted[2].share.priority, 2) << "no more urgent than its tenant";
  EXPECT_EQ(submitted[3].share.tenant, "b");
  EXPECT_FALSE(submitted[3].share.ttft_bound_seconds) << "it rather waits";
  const Served open;
  EXPECT_EQ(open.complete(R"("priority":-7)").status, 200);
  EXPECT_EQ(open.engine->submitted()[0].share.priority, -7);
}

TEST(Tenants, unreachable_bound_is_refused_with_the_excess) {
  const Served served({.expected_ttft_seconds = 9.5}, with({{.name = "a", .ttft_bound_seconds = 2},
                                                            {.name = "b", .ttft_bound_seconds = 10}}));
  const RawResponse refused = complete_as(served, "sk-a-key");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "deadline_unreachable");
  EXPECT_EQ(header(refused, "retry-after"), "8");
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
}

TEST(Tenants, usage_is_counted_by_tenant) {
  const Served served({}, with({{.name = "a"}, {.name = "b", .admin = true}}));
  EXPECT_EQ(complete_as(served, "sk-a-key", R"("n":2)").status, 200);
  const auto own = json_of(get_as(served, "/v1/usage", bearer("sk-a-key")));
  EXPECT_EQ(text_at(own, "/tenant"), "a");
  EXPECT_EQ(text_at(own, "/requests"), "1");
  EXPECT_EQ(text_at(own, "/prompt_tokens"), "2");
  EXPECT_EQ(text_at(own, "/cached_prompt_tokens"), "1");
  EXPECT_EQ(text_at(own, "/completion_tokens"), "26");
  EXPECT_EQ(text_at(own, "/requests_in_flight"), "0");
  EXPECT_EQ(get_as(served, "/v1/usage?tenants=all", bearer("sk-a-key")).status, 403);
  const auto all = json_of(get_as(served, "/v1/usage?tenants=all", bearer("sk-b-key")));
  EXPECT_EQ(text_at(all, "/data/0/completion_tokens"), "26");
  EXPECT_EQ(text_at(all, "/data/1/tenant"), "b");
  EXPECT_EQ(text_at(all, "/data/1/requests"), "0");
  EXPECT_EQ(get_as(served, "/v1/usage?tenants=one", bearer("sk-b-key")).status, 400);
}

TEST(Tenants, without_keys_everyone_is_one_tenant) {
  const Served served;
  EXPECT_EQ(complete_as(served, "whatever").status, 200);
  EXPECT_EQ(served.complete().status, 200);
  EXPECT_EQ(text_at(json_of(served.get("/v1/usage")), "/requests"), "2");
  EXPECT_EQ(text_at(json_of(served.get("/v1/usage?tenants=all")), "/data/0/tenant"), "default");
}

TEST(Tenants, replaced_keys_hold_at_once_and_running_requests_go_on) {
  const Served served({}, with({{.name = "a"}}));
  served.engine->hold();
  RawSocket running(served.server->port());
  running.send(Served::post_text("/v1/completions", Served::completion_body(), bearer("sk-a-key")));
  ASSERT_TRUE(eventually([&] { return served.engine->active() == 1; }));
  served.server->replace_tenants({tenant({.name = "b"})});
  served.engine->go_on();
  EXPECT_EQ(running.read_response().status, 200);
  EXPECT_EQ(complete_as(served, "sk-a-key").status, 401);
  EXPECT_EQ(complete_as(served, "sk-b-key").status, 200);
}

// RFC 4648, section 10.
TEST(Base64, known_texts) {
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
  for (const char* bad : {"Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Z===", "====", "Zm9v\n", "Zm 9", "Zm9-"})
    EXPECT_FALSE(decode_base64(bad)) << bad;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(decode_base64(encode_base64(all)), all);
}

}  // namespace
}  // namespace assay
