// What connections cost the server's process, and when an event reaches its client.
//   connections_bench [--json]
// 1,000 idle keep-alive connections, each of which has been answered once, and 256 active SSE streams, over
// plain HTTP and over TLS, all on one process with one I/O thread. Memory is the growth of this process's
// resident set; the clients live in a child process, so that theirs does not count. Latency is from the call
// of send() in a thread of its own to the client having read the event, for one event to every stream at
// once, as an engine step sends them: the client reads them one after the other, so its own work is part of
// it.
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/stats.h"
#include "bench/figures.h"
#include "bench/http/connection_clients.h"
#include "http/server.h"

namespace {

using assay::Result;
using assay::bench::Better;
using assay::bench::ClientConnection;
using assay::bench::Figure;
using Clock = std::chrono::steady_clock;

constexpr size_t kIdle = 1000;
constexpr size_t kStreams = 256;
constexpr size_t kRounds = 200;
constexpr double kIdleBoundKib = 40;

int64_t now_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

double resident_kib() {
  const auto text = assay::read_file("/proc/self/statm", 4096);
  long pages = 0;
  if (!text || std::sscanf(text->c_str(), "%*d %ld", &pages) != 1) return 0;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

// --- the child ---

// Commands come as single letters, each is answered with as many doubles as it says.
class Clients {
 public:
  Clients(int in, int out) : in_(in), out_(out), tls_(SSL_CTX_new(TLS_client_method())) {}

  int run() {
    uint16_t port = 0;
    if (::read(in_, &port, sizeof(port)) != sizeof(port)) return 1;
    for (char command = 0; ::read(in_, &command, 1) == 1;) {
      if (command == 'q') return 0;
      if (command == 't') secure_ = true;
      if (command == 'w') open_idle(port, kIdle / 4), idle_.clear();
      if (command == 'i') open_idle(port, kIdle);
      if (command == 's') open_streams(port);
      if (command == 'l') measure();
      const double done = failed_ ? -1 : 1;
      if (::write(out_, &done, sizeof(done)) != sizeof(done)) return 1;
    }
    return 0;
  }

 private:
  std::unique_ptr<ClientConnection> connect(uint16_t port) {
    auto connection = std::make_unique<ClientConnection>(port, secure_ ? tls_ : nullptr);
    failed_ = failed_ || !connection->alive();
    return connection;
  }

  void open_idle(uint16_t port, size_t n) {
    const std::string body(4096, 'x');
    for (size_t i = 0; i < n && !failed_; ++i) {
      auto connection = connect(port);
      connection->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4096\r\n\r\n" + body);
      std::string input;
      failed_ = failed_ || !connection->receive_until(input, body);
      idle_.push_back(std::move(connection));
    }
  }

  void open_streams(uint16_t port) {
    for (size_t i = 0; i < kStreams && !failed_; ++i) {
      auto connection = connect(port);
      connection->send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
      std::string input;
      failed_ = failed_ || !connection->receive_until(input, "data: ready\n\n");
      streams_.push_back(std::move(connection));
    }
  }

  // Every stream gets kRounds events with the time of their sending; sends back all the latencies.
  void measure() {
    std::vector<double> seconds;
    std::vector<std::string> inputs(streams_.size());
    std::vector<pollfd> waiting;
    for (const auto& stream : streams_) waiting.push_back({stream->descriptor(), POLLIN, 0});
    while (seconds.size() < kRounds * streams_.size() && !failed_) {
      if (::poll(waiting.data(), waiting.size(), 10000) <= 0) failed_ = true;
      for (size_t i = 0; i < waiting.size() && !failed_; ++i) {
        if (waiting[i].revents == 0) continue;
        do streams_[i]->receive(inputs[i]);
        while (streams_[i]->has_pending());
        failed_ = !streams_[i]->alive();
        const int64_t now = now_nanoseconds();
        for (size_t at; (at = inputs[i].find("data: ")) != std::string::npos;) {
          const size_t end = inputs[i].find("\n\n", at);
          if (end == std::string::npos) break;
          seconds.push_back(static_cast<double>(now - std::stoll(inputs[i].substr(at + 6))) * 1e-9);
          inputs[i].erase(0, end + 2);
        }
      }
    }
    const double summary[] = {assay::quantile(seconds, 0.5), assay::quantile(seconds, 0.99),
                              static_cast<double>(seconds.size())};
    failed_ = failed_ || ::write(out_, summary, sizeof(summary)) != sizeof(summary);
  }

  int in_;
  int out_;
  SSL_CTX* tls_;
  bool secure_ = false;
  bool failed_ = false;
  std::vector<std::unique_ptr<ClientConnection>> idle_;
  std::vector<std::unique_ptr<ClientConnection>> streams_;
};

class ClientProcess {
 public:
  ClientProcess() {
    int to[2];
    int from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::exit(2);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(to[1]);
      ::close(from[0]);
      std::_Exit(Clients(to[0], from[1]).run());
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~ClientProcess() {
    begin('q');  // the other child holds copies of the pipes: closing them says nothing
    ::close(to_);
    ::close(from_);
    ::waitpid(child_, nullptr, 0);
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  void connect_to(uint16_t port) { put(&port, sizeof(port)); }
  void begin(char command) { put(&command, 1); }
  double read_number() {
    double value = 0;
    if (::read(from_, &value, sizeof(value)) != sizeof(value)) fail();
    return value;
  }
  void end() {
    if (read_number() < 0) fail();
  }
  void run(char command) {
    begin(command);
    end();
  }

 private:
  void put(const void* bytes, size_t n) {
    if (::write(to_, bytes, n) != static_cast<ssize_t>(n)) fail();
  }
  [[noreturn]] static void fail() {
    std::fputs("connections_bench: the clients failed\n", stderr);
    std::exit(2);
  }

  pid_t child_ = 0;
  int to_ = -1;
  int from_ = -1;
};

// --- the server ---

class StreamServer {
 public:
  explicit StreamServer(assay::ServerConfig config) {
    config.max_connections = 4096;
    config.max_connections_per_address = 0;
    std::vector<assay::HttpServer::Route> routes;
    routes.push_back(
        {"POST", "/echo", [](assay::HttpRequest request, std::shared_ptr<assay::Responder> responder) {
           responder->respond(assay::text_response(200, std::move(request.body)));
         }});
    routes.push_back(
        {"GET", "/stream", [this](assay::HttpRequest, std::shared_ptr<assay::Responder> responder) {
           responder->start_stream(200, {{"Content-Type", "text/event-stream"}});
           responder->send("data: ready\n\n");
           const std::scoped_lock lock(mutex_);
           streams_.push_back(std::move(responder));
         }});
    auto started = assay::HttpServer::start(std::move(config), std::move(routes));
    if (!started) {
      std::fprintf(stderr, "connections_bench: %s\n", started.error().message().c_str());
      std::exit(2);
    }
    server_ = std::move(*started);
  }
  ~StreamServer() {
    streams_.clear();
    server_.reset();
  }

  uint16_t port() const { return server_->port(); }
  void send_to_all() {
    const std::scoped_lock lock(mutex_);
    for (const auto& stream : streams_) stream->send(fmt::format("data: {}\n\n", now_nanoseconds()));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<assay::Responder>> streams_;
  std::unique_ptr<assay::HttpServer> server_;
};

void add_figures(std::vector<Figure>& figures, ClientProcess& clients, assay::ServerConfig config,
                 const std::string& kind) {
  const bool secure = config.tls.has_value();
  StreamServer server(std::move(config));
  clients.connect_to(server.port());
  if (secure) clients.run('t');
  clients.run('w');  // allocator, thread buffers, OpenSSL's tables
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = resident_kib();
  clients.run('i');
  const double with_idle = resident_kib();
  clients.run('s');
  const double with_streams = resident_kib();
  clients.begin('l');
  for (size_t round = 0; round < kRounds; ++round) {
    server.send_to_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double median = clients.read_number();
  const double high = clients.read_number();
  const double samples = clients.read_number();
  clients.end();
  const std::string how = "resident set of the server's process, clients in another";
  figures.push_back({kind + " memory per idle connection", (with_idle - before) / kIdle, "KiB", kIdleBoundKib,
                     Better::kLower, kIdle, how});
  figures.push_back({kind + " memory per open stream",
                     (with_streams - with_idle) / kStreams,
                     "KiB",
                     {},
                     Better::kLower,
                     kStreams,
                     how});
  const std::string timing =
      "send() to read by the client, one event to each of 256 streams every 20 ms, beside 1000 "
      "idle connections";
  figures.push_back({kind + " event latency, median",
                     median * 1e3,
                     "ms",
                     {},
                     Better::kLower,
                     static_cast<int>(samples),
                     timing});
  figures.push_back({kind + " event latency, P99",
                     high * 1e3,
                     "ms",
                     {},
                     Better::kLower,
                     static_cast<int>(samples),
                     timing});
}

// A self-signed certificate, made here.
assay::TlsFiles make_certificate(const std::filesystem::path& folder) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -60);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, key);
  X509_sign(x, key, EVP_sha256());
  assay::TlsFiles files{folder / "bench.crt", folder / "bench.key"};
  std::FILE* out = std::fopen(files.certificate_file.c_str(), "w");
  PEM_write_X509(out, x);
  std::fclose(out);
  out = std::fopen(files.key_file.c_str(), "w");
  PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(out);
  X509_free(x);
  EVP_PKEY_free(key);
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<Figure> figures;
  // Both children before any thread.
  auto plain = std::make_unique<ClientProcess>();
  auto secure = std::make_unique<ClientProcess>();
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-bench-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  assay::ServerConfig tls;
  tls.tls = make_certificate(folder);
  std::filesystem::path files[] = {tls.tls->certificate_file, tls.tls->key_file};
  add_figures(figures, *plain, {}, "plain");
  plain.reset();
  ::malloc_trim(0);
  add_figures(figures, *secure, tls, "TLS");
  secure.reset();
  for (const auto& file : files) std::filesystem::remove(file);
  std::filesystem::remove(folder);
  return assay::bench::print(figures, assay::bench::wants_json(argc, argv));
}
