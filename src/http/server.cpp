#include "http/server.h"

#include <fmt/format.h>
#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "http/address_quota.h"
#include "http/connection.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using http_internal::Connection;
using http_internal::Runtime;
using http_internal::Socket;

constexpr int kRefusedAtOnce = 64;  // connections over the limit that still hear why

AddressQuota::Key address_key(const Socket& socket) {
  error_code error;
  const auto address = socket.remote_endpoint(error).address();
  return address.is_v4() ? AddressQuota::key_of_v4(address.to_v4().to_bytes())
                         : AddressQuota::key_of_v6(address.to_v6().to_bytes());
}

HttpResponse plain_error(int status, std::string_view, std::string_view message) {
  return text_response(status, std::string(message) + "\n");
}

class AsioServer final : public HttpServer {
 public:
  explicit AsioServer(ServerConfig config)
      : runtime_(std::make_shared<Runtime>(std::move(config))),
        acceptor_(asio::make_strand(runtime_->context)),
        retry_(acceptor_.get_executor()),
        work_(asio::make_work_guard(runtime_->context)),
        quota_(runtime_->config.max_connections_per_address) {
    if (!runtime_->config.make_error) runtime_->config.make_error = plain_error;
    runtime_->on_closed = [this](uint64_t id) { forget(id); };
  }

  ~AsioServer() override {
    drain(0);
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  Result<void> open(std::vector<Route> routes);
  uint16_t port() const override { return port_; }
  std::string address() const override { return address_; }
  int connections() const override {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(connections_.size());
  }
  ServerCounters counters() const override;
  uint64_t held_body_bytes() const override { return runtime_->held_body_bytes.load(); }
  Result<void> reload_tls() override;
  void stop_accepting() override;
  bool drain(double timeout_seconds) override;

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, http_internal::Executor>;

  struct Entry {
    std::weak_ptr<Connection> connection;
    AddressQuota::Key address;
  };

  Result<void> listen();
  void accept();
  void admit(Socket socket);
  void on_accept(const error_code& error, Socket socket);
  void forget(uint64_t id);
  std::vector<std::shared_ptr<Connection>> living() const;

  std::shared_ptr<Runtime> runtime_;
  Acceptor acceptor_;
  http_internal::Timer retry_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
  std::string address_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Entry> connections_;
  AddressQuota quota_;
  std::shared_ptr<const TlsContext> tls_;  // null: plain HTTP
  ServerCounters counters_;                // but for what the connections count
  uint64_t next_id_ = 0;
};

Result<void> AsioServer::open(std::vector<Route> routes) {
  ServerConfig& config = runtime_->config;
  for (Route& route : routes) {
    RETURN_IF_ERROR(runtime_->router.add(route.method, route.pattern, runtime_->handlers.size()));
    runtime_->handlers.push_back(std::move(route.handler));
  }
  ASSIGN_OR_RETURN(config.cors, check_cors_policy(config.cors));
  if (config.tls) RETURN_IF_ERROR(reload_tls());
  RETURN_IF_ERROR(listen());
  accept();
  for (int i = 0; i < std::max(1, config.io_threads); ++i) {
    threads_.emplace_back([runtime = runtime_] {
      pthread_setname_np(pthread_self(), "http-io");
      runtime->context.run();
    });
  }
  return {};
}

Result<void> AsioServer::listen() {
  const ServerConfig& config = runtime_->config;
  error_code error;
  const auto host = asio::ip::make_address(config.address, error);
  if (error) {
    return fail(ErrorCode::kInvalidArgument, config.address, "expected an IPv4 or IPv6 address to listen on");
  }
  const asio::ip::tcp::endpoint endpoint(host, config.port);
  const std::string where = fmt::format("{}:{}", config.address, config.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  // Connections inherit these; otherwise the system lets each grow to several MiB.
  error_code ignored;
  acceptor_.set_option(asio::socket_base::send_buffer_size(config.socket_buffer_bytes), ignored);
  acceptor_.set_option(asio::socket_base::receive_buffer_size(config.socket_buffer_bytes), ignored);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return fail(ErrorCode::kUnavailable, where,
                "the port is in use by another program; stop it or choose another");
  }
  if (error) return fail(ErrorCode::kIo, where, "cannot listen: {}", error.message());
  port_ = acceptor_.local_endpoint(error).port();
  address_ = host.is_v6() ? fmt::format("[{}]:{}", config.address, port_)
                          : fmt::format("{}:{}", config.address, port_);
  return {};
}

Result<void> AsioServer::reload_tls() {
  const auto& files = runtime_->config.tls;
  if (!files) return fail(ErrorCode::kInvalidArgument, "TLS", "this server was started without certificate");
  ASSIGN_OR_RETURN(auto loaded, TlsContext::load(*files));
  if (!loaded->warning().empty()) log_warning("{}: {}", files->certificate_file, loaded->warning());
  const std::scoped_lock lock(mutex_);
  tls_ = std::move(loaded);
  return {};
}

ServerCounters AsioServer::counters() const {
  const std::scoped_lock lock(mutex_);
  ServerCounters all = counters_;
  all.failed_handshakes = runtime_->failed_handshakes.load();
  all.timed_out = runtime_->timed_out.load();
  return all;
}

void AsioServer::accept() {
  acceptor_.async_accept(
      asio::make_strand(runtime_->context),
      [this](const error_code& error, Socket socket) { on_accept(error, std::move(socket)); });
}

void AsioServer::on_accept(const error_code& error, Socket socket) {
  if (!acceptor_.is_open()) return;
  if (error) {
    if (error == asio::error::operation_aborted) return;
    // Out of file descriptors, or the client was gone already: try again in a moment instead of spinning.
    retry_.expires_after(std::chrono::milliseconds(50));
    retry_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
    return;
  }
  admit(std::move(socket));
  accept();
}

void AsioServer::admit(Socket socket) {
  const ServerConfig& config = runtime_->config;
  const AddressQuota::Key address = address_key(socket);
  std::shared_ptr<Connection> connection;
  int excess = 0;
  bool within_quota = false;
  {
    const std::scoped_lock lock(mutex_);
    const uint64_t id = next_id_++;
    connection = std::make_shared<Connection>(runtime_, std::move(socket), id, tls_);
    connections_.emplace(id, Entry{connection, address});
    excess = static_cast<int>(connections_.size()) - config.max_connections;
    within_quota = quota_.enter(address);
    ++counters_.accepted;
    if (excess > 0) {
      ++counters_.refused_total;
    } else if (!within_quota) {
      ++counters_.refused_per_address;
    }
  }
  if (excess > kRefusedAtOnce) {
    connection->cut();
  } else if (excess > 0) {
    connection->refuse(503, fmt::format("too many connections (the limit is {})", config.max_connections));
  } else if (!within_quota) {
    connection->refuse(429, fmt::format("too many connections from your address (the limit is {})",
                                        config.max_connections_per_address));
  } else {
    connection->start();
  }
}

void AsioServer::forget(uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  quota_.leave(found->second.address);
  connections_.erase(found);
  changed_.notify_all();
}

std::vector<std::shared_ptr<Connection>> AsioServer::living() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Connection>> found;
  for (const auto& [id, entry] : connections_) {
    if (auto connection = entry.connection.lock()) found.push_back(std::move(connection));
  }
  return found;
}

void AsioServer::stop_accepting() {
  if (threads_.empty()) return;
  std::mutex mutex;
  std::condition_variable closed;
  bool done = false;
  asio::post(acceptor_.get_executor(), [&] {
    error_code ignored;
    retry_.cancel();
    acceptor_.close(ignored);
    const std::scoped_lock lock(mutex);
    done = true;
    closed.notify_all();
  });
  std::unique_lock lock(mutex);
  closed.wait(lock, [&] { return done; });
}

bool AsioServer::drain(double timeout_seconds) {
  if (threads_.empty()) return true;
  stop_accepting();
  runtime_->draining.store(true);
  for (const auto& connection : living()) connection->begin_drain();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_seconds);
  std::unique_lock lock(mutex_);
  const bool clean = changed_.wait_until(lock, deadline, [&] { return connections_.empty(); });
  if (clean) return true;
  lock.unlock();
  for (const auto& connection : living()) connection->cut();
  lock.lock();
  changed_.wait(lock, [&] { return connections_.empty(); });
  return false;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerConfig config, std::vector<Route> routes) {
  auto server = std::make_unique<AsioServer>(std::move(config));
  RETURN_IF_ERROR(server->open(std::move(routes)));
  return server;
}

}  // namespace assay
