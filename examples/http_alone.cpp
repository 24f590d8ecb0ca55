// A server that counts to five over server-sent events, and a client that watches it count. Links assay_http
// alone.
#include <cstdio>
#include <string>
#include <thread>

#include "http/client.h"
#include "http/server.h"

int main() {
  using namespace assay;
  std::thread counting;
  auto server =
      HttpServer::start({}, {{"GET", "/count", [&](HttpRequest, std::shared_ptr<Responder> responder) {
                                responder->start_stream(200, {{"Content-Type", "text/event-stream"}});
                                counting = std::thread([responder] {
                                  for (int i = 1; i <= 5; ++i) responder->send(to_sse(std::to_string(i)));
                                  responder->finish();
                                });
                              }}});
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  const FetchRequest request{.url = "http://" + (*server)->address() + "/count"};
  const auto response = fetch_events(request, [](const SseEvent& event) {
    std::printf("%s\n", event.data.c_str());
    return true;
  });
  counting.join();
  if (!response) std::fprintf(stderr, "%s\n", response.error().message().c_str());
  return response ? 0 : 1;
}
