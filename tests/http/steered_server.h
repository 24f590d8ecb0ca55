// A server whose routes tests steer, and short ways to ask it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "http/raw_socket.h"
#include "http/server.h"

namespace assay::testing {

inline bool eventually(const std::function<bool()>& condition, double seconds = 10) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// Routes that tests steer: what a handler was given and the responders it has kept.
struct Bench {
  std::atomic<int> calls{0};
  std::atomic<int> disconnects{0};
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> kept;
  std::vector<AccessRecord> accesses;
  std::unique_ptr<HttpServer> server;

  explicit Bench(ServerConfig config = {}) {
    config.on_access = [this](const AccessRecord& record) {
      const std::scoped_lock lock(mutex);
      accesses.push_back(record);
    };
    auto started = HttpServer::start(std::move(config), routes());
    if (!started) ADD_FAILURE() << started.error().message();
    server = std::move(*started);
  }
  ~Bench() {
    kept.clear();
    server.reset();
  }

  std::vector<HttpServer::Route> routes() {
    std::vector<HttpServer::Route> all;
    all.push_back({"GET", "/hello", [this](HttpRequest, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->respond(text_response(200, "hello"));
                   }});
    all.push_back({"POST", "/echo", [this](HttpRequest request, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->respond(text_response(200, request.body));
                   }});
    all.push_back({"GET", "/names/{name...}", [](HttpRequest request, std::shared_ptr<Responder> responder) {
                     responder->respond(text_response(200, std::string(request.path_parameter("name"))));
                   }});
    all.push_back({"POST", "/keep", [this](HttpRequest, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->on_disconnect([this] { ++disconnects; });
                     const std::scoped_lock lock(mutex);
                     kept.push_back(std::move(responder));
                   }});
    all.push_back({"GET", "/forget", [](HttpRequest, std::shared_ptr<Responder>) {}});
    all.push_back(
        {"GET", "/throw", [](HttpRequest, std::shared_ptr<Responder>) { throw std::runtime_error("oops"); }});
    all.push_back({"GET", "/headers", [](HttpRequest request, std::shared_ptr<Responder> responder) {
                     std::string text = request.query + "|" + request.request_id;
                     for (const Header& field : request.headers)
                       text += "\n" + field.name + "=" + field.value;
                     responder->respond(text_response(200, text));
                   }});
    return all;
  }

  std::shared_ptr<Responder> wait_kept(size_t index) {
    eventually([&] {
      const std::scoped_lock lock(mutex);
      return kept.size() > index;
    });
    const std::scoped_lock lock(mutex);
    return kept.at(index);
  }
};

inline std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}", path, more, body.size(),
                     body);
}

inline RawResponse ask(uint16_t port, std::string_view bytes, bool head_only = false) {
  RawSocket socket(port);
  socket.send(bytes);
  return socket.read_response(10, head_only);
}

}  // namespace assay::testing
