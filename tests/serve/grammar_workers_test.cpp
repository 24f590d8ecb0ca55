#include "serve/grammar_workers.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "serve/served.h"

namespace assay {
namespace {

using testing::eventually;
using testing::json_of;
using testing::Served;
using testing::text_at;

TEST(GrammarWorkers, Full_refusesUntilAJobHasBegun) {
  GrammarWorkers workers(1, 2);
  std::promise<void> begun, gate;
  std::shared_future<void> open = gate.get_future().share();
  std::string order;
  ASSERT_TRUE(workers.submit([&] {
    begun.set_value();
    open.wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(workers.submit([&] { order += 'a'; }));
  std::promise<void> done;
  EXPECT_TRUE(workers.submit([&] {
    order += 'b';
    done.set_value();
  }));
  EXPECT_FALSE(workers.submit([&] { order += 'c'; }));
  gate.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "ab");
  EXPECT_TRUE(workers.submit([] {}));
}

TEST(GrammarWorkers, Destroyed_dropsWhatWaits) {
  const auto alive = std::make_shared<int>(0);
  {
    GrammarWorkers workers(0);
    EXPECT_TRUE(workers.submit([alive] { ++*alive; }));
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(*alive, 0);
}

TEST(GrammarWorkers, Requests_behindASchemaOnOneConnection_keepTheirOrder) {
  const Served served;
  testing::RawSocket socket(served.server->port());
  const std::string schema =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":5}}})";
  socket.send(Served::post_text("/v1/chat/completions", Served::chat_body(schema)) +
              Served::post_text("/v1/chat/completions", Served::chat_body()));
  const auto first = socket.read_response(), second = socket.read_response();
  EXPECT_EQ(text_at(json_of(first), "/error/code"), "invalid_schema");
  EXPECT_EQ(second.status, 200);
}

}  // namespace
}  // namespace assay
