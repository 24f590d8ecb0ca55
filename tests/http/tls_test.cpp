#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/random.h"
#include "http/certificate.h"
#include "http/client.h"
#include "http/server.h"
#include "http/steered_server.h"

namespace assay {
namespace {

using testing::Bench;
using testing::CertificateFolder;
using testing::eventually;
using testing::post;
using testing::RawSocket;
using testing::TlsClient;

const std::string kHello = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

ServerConfig secure(const TlsFiles& files) {
  ServerConfig config;
  config.tls = files;
  return config;
}

// --- files ---

TEST(TlsContext, files_that_cannot_be_used_are_named_with_the_reason) {
  const CertificateFolder folder;
  const TlsFiles good = folder.make("good");
  const TlsFiles other = folder.make("other");
  const std::string text = folder.write("text", "not a certificate\n");
  const std::string broken =
      folder.write("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  const std::string broken_key =
      folder.write("broken_key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  const TlsFiles encrypted = folder.make("encrypted", -60, 3600, "secret");
  struct Case {
    TlsFiles files;
    ErrorCode code;
    std::string at_fault;
    std::string reason;
  };
  const Case cases[] = {
      {{folder.file("missing"), good.key_file}, ErrorCode::kNotFound, "missing", ""},
      {{good.certificate_file, folder.file("missing")}, ErrorCode::kNotFound, "missing", ""},
      {{folder.file(""), good.key_file}, ErrorCode::kInvalidArgument, "TLS certificate", ""},
      {{text, good.key_file}, ErrorCode::kCorrupt, "text", "no PEM certificate"},
      {{good.certificate_file, text}, ErrorCode::kCorrupt, "text", "no PEM private key"},
      {{good.key_file, good.certificate_file}, ErrorCode::kCorrupt, "good.key", "no PEM certificate"},
      {{broken, good.key_file}, ErrorCode::kCorrupt, "broken", "not a usable"},
      {{good.certificate_file, broken_key}, ErrorCode::kCorrupt, "broken_key", "not a usable"},
      {{good.certificate_file, other.key_file},
       ErrorCode::kInvalidArgument,
       "other.key",
       "not the private key"},
      {encrypted, ErrorCode::kUnsupported, "encrypted.key", "encrypted"},
  };
  for (const Case& c : cases) {
    const auto loaded = TlsContext::load(c.files);
    ASSERT_FALSE(loaded.has_value()) << c.at_fault;
    EXPECT_EQ(loaded.error().code, c.code) << loaded.error().message();
    EXPECT_NE(loaded.error().message().find(c.at_fault), std::string::npos) << loaded.error().message();
    EXPECT_NE(loaded.error().message().find(c.reason), std::string::npos) << loaded.error().message();
    const auto server = HttpServer::start(secure(c.files), {});
    ASSERT_FALSE(server.has_value());
    EXPECT_EQ(server.error().code, c.code);
  }
  EXPECT_TRUE(TlsContext::load(good).has_value());
}

TEST(TlsContext, certificate_outside_its_time_is_served_with_a_warning) {
  const CertificateFolder folder;
  EXPECT_EQ((*TlsContext::load(folder.make("valid")))->warning(), "");
  EXPECT_EQ((*TlsContext::load(folder.make("old", -7200, -3600)))->warning(), "the certificate has expired");
  EXPECT_EQ((*TlsContext::load(folder.make("new", 3600, 7200)))->warning(),
            "the certificate is not valid yet");
}

// --- service ---

TEST(HttpsServer, own_client_verifies_and_is_answered) {
  const CertificateFolder folder;
  const TlsFiles files = folder.make("localhost");
  Bench bench(secure(files));
  FetchRequest request{.url = fmt::format("https://localhost:{}/hello", bench.server->port())};
  request.ca_file = files.certificate_file;
  const auto answer = fetch(request);
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->body, "hello");
  request.ca_file.clear();
  const auto stranger = fetch(request);
  ASSERT_FALSE(stranger.has_value());
  EXPECT_NE(stranger.error().message().find("not trusted"), std::string::npos) << stranger.error().message();
}

TEST(HttpsServer, large_bodies_pipelined_requests_and_streams_arrive_whole) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  RawSocket socket(bench.server->port());
  TlsClient client(socket.descriptor(), {});
  ASSERT_TRUE(client.connected());
  Random random(3, "tls bodies");
  std::string body(size_t{5} << 20, ' ');
  for (char& c : body) c = static_cast<char>('a' + random.below(26));
  std::thread sender([&] { EXPECT_TRUE(client.send(post("/echo", body))); });
  sender.join();
  std::string answer = client.receive(body.size());
  const size_t head = answer.find("\r\n\r\n") + 4;
  answer += client.receive(head);
  EXPECT_TRUE(answer.substr(head) == body);
  ASSERT_TRUE(client.send(kHello + kHello + kHello));
  std::string three;
  while (three.size() < 3 || std::count(three.begin(), three.end(), 'X') < 3 || !three.ends_with("hello")) {
    const std::string more = client.receive(1);
    if (more.empty()) break;
    three += more;
  }
  EXPECT_TRUE(three.ends_with("hello"));
  ASSERT_TRUE(client.send(post("/keep", "")));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    const std::string piece(1 + random.below(3000), static_cast<char>('a' + i % 26));
    EXPECT_TRUE(responder->send(piece));
    sent += piece;
  }
  responder->finish();
  std::string stream;
  while (!stream.ends_with("0\r\n\r\n")) {
    const std::string more = client.receive(1);
    if (more.empty()) break;
    stream += more;
  }
  std::string joined;
  for (size_t at = stream.find("\r\n\r\n") + 4; at < stream.size();) {
    const size_t size = std::stoul(stream.substr(at), nullptr, 16);
    const size_t start = stream.find("\r\n", at) + 2;
    joined += stream.substr(start, size);
    at = start + size + 2;
  }
  EXPECT_TRUE(joined == sent);
}

TEST(HttpsServer, versions_and_ciphers_are_sound_ones_only) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  const auto try_with = [&](TlsClient::Wishes wishes) {
    RawSocket socket(bench.server->port());
    TlsClient client(socket.descriptor(), wishes);
    return client.connected() ? client.version() + " " + client.cipher() : std::string("refused");
  };
  EXPECT_EQ(try_with({.min_version = TLS1_VERSION, .max_version = TLS1_VERSION}), "refused");
  EXPECT_EQ(try_with({.min_version = TLS1_1_VERSION, .max_version = TLS1_1_VERSION}), "refused");
  EXPECT_EQ(try_with({.max_version = TLS1_2_VERSION}), "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256");
  EXPECT_TRUE(try_with({}).starts_with("TLSv1.3 "));
  // Without forward secrecy, or with CBC.
  for (const char* weak : {"AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "NULL", "aNULL"}) {
    EXPECT_EQ(try_with({.max_version = TLS1_2_VERSION, .ciphers = weak}), "refused") << weak;
  }
  EXPECT_GE(bench.server->counters().failed_handshakes, 2U);
}

TEST(HttpsServer, alpn_picks_http_1_1_or_refuses) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  using namespace std::string_view_literals;
  struct Case {
    std::string_view offered;
    bool connects;
    std::string chosen;
  };
  for (const Case& c : {Case{""sv, true, ""}, Case{"\x08http/1.1"sv, true, "http/1.1"},
                        Case{"\x02h2\x08http/1.1"sv, true, "http/1.1"}, Case{"\x02h2"sv, false, ""},
                        Case{"\x08http/1.0\x02h3"sv, false, ""}}) {
    RawSocket socket(bench.server->port());
    TlsClient client(socket.descriptor(), {.alpn = c.offered});
    EXPECT_EQ(client.connected(), c.connects) << c.offered;
    if (c.connects) {
      EXPECT_EQ(client.protocol(), c.chosen);
    }
  }
}

TEST(HttpsServer, plain_http_on_its_port_is_told_so) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  RawSocket socket(bench.server->port());
  socket.send(kHello);
  const auto response = socket.read_response();
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("https"), std::string::npos);
  EXPECT_TRUE(socket.wait_for_close());
  EXPECT_EQ(bench.calls.load(), 0);
}

TEST(HttpsServer, garbage_half_handshakes_and_silence_are_cut_and_hold_a_connection_meanwhile) {
  const CertificateFolder folder;
  ServerConfig config = secure(folder.make("localhost"));
  config.tls_handshake_timeout_seconds = 0.3;
  config.max_connections = 3;
  Bench bench(config);
  RawSocket garbage(bench.server->port());
  garbage.send(std::string(300, '\xff'));
  EXPECT_TRUE(garbage.wait_for_close());
  RawSocket silent(bench.server->port());
  RawSocket half(bench.server->port());
  half.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));  // the beginning of a hello
  RawSocket third(bench.server->port());
  ASSERT_TRUE(eventually([&] { return bench.server->connections() == 3; }));
  RawSocket fourth(bench.server->port());
  EXPECT_TRUE(fourth.wait_for_close());
  EXPECT_EQ(fourth.input(), "");
  EXPECT_EQ(bench.server->counters().refused_total, 1U);
  for (RawSocket* socket : {&silent, &half, &third}) {
    EXPECT_TRUE(socket->wait_for_close());
    EXPECT_EQ(socket->input(), "");
  }
  EXPECT_TRUE(eventually([&] { return bench.server->counters().failed_handshakes >= 4U; }));
  RawSocket socket(bench.server->port());
  TlsClient client(socket.descriptor(), {});
  ASSERT_TRUE(client.connected());
  ASSERT_TRUE(client.send(kHello));
  EXPECT_EQ(client.receive(15), "HTTP/1.1 200 OK");
}

TEST(HttpsServer, end_of_a_connection_is_said_in_tls) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  RawSocket socket(bench.server->port());
  TlsClient client(socket.descriptor(), {});
  ASSERT_TRUE(client.send("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(client.receive(1 << 20).ends_with("hello"));
  EXPECT_TRUE(client.ended_cleanly());
}

TEST(HttpsServer, client_that_leaves_is_noticed) {
  const CertificateFolder folder;
  Bench bench(secure(folder.make("localhost")));
  RawSocket socket(bench.server->port());
  TlsClient client(socket.descriptor(), {});
  ASSERT_TRUE(client.send(post("/keep", "")));
  const auto responder = bench.wait_kept(0);
  socket.close();
  EXPECT_TRUE(eventually([&] { return bench.disconnects.load() == 1; }));
}

TEST(HttpsServer, reload_serves_the_new_certificate_and_a_bad_one_changes_nothing) {
  const CertificateFolder folder;
  const TlsFiles files = folder.make("first");
  Bench bench(secure(files));
  const auto name_now = [&] {
    RawSocket socket(bench.server->port());
    TlsClient client(socket.descriptor(), {});
    return client.connected() ? client.peer_name() : std::string("refused");
  };
  EXPECT_EQ(name_now(), "first");
  RawSocket old_socket(bench.server->port());
  TlsClient old_client(old_socket.descriptor(), {});
  const TlsFiles second = folder.make("second");
  std::filesystem::copy_file(second.certificate_file, files.certificate_file,
                             std::filesystem::copy_options::overwrite_existing);
  const auto mismatched = bench.server->reload_tls();  // the key is still the first one's
  ASSERT_FALSE(mismatched.has_value());
  EXPECT_EQ(mismatched.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(name_now(), "first");
  std::filesystem::copy_file(second.key_file, files.key_file,
                             std::filesystem::copy_options::overwrite_existing);
  const auto reloaded = bench.server->reload_tls();
  ASSERT_TRUE(reloaded.has_value()) << reloaded.error().message();
  EXPECT_EQ(name_now(), "second");
  ASSERT_TRUE(old_client.send(kHello));
  EXPECT_EQ(old_client.receive(15), "HTTP/1.1 200 OK");
}

TEST(HttpsServer, reload_without_tls_is_refused) {
  Bench bench;
  const auto reloaded = bench.server->reload_tls();
  ASSERT_FALSE(reloaded.has_value());
  EXPECT_EQ(reloaded.error().code, ErrorCode::kInvalidArgument);
}

TEST(HttpsServer, stalled_reader_is_given_up) {
  const CertificateFolder folder;
  ServerConfig config = secure(folder.make("localhost"));
  config.write_timeout_seconds = 0.2;
  config.max_stream_queue_bytes = size_t{64} << 20;
  Bench bench(config);
  RawSocket socket(bench.server->port(), 4096);
  TlsClient client(socket.descriptor(), {});
  ASSERT_TRUE(client.send(post("/keep", "")));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  ASSERT_TRUE(responder->send(std::string(size_t{32} << 20, 'z')));
  EXPECT_TRUE(eventually([&] { return bench.disconnects.load() == 1; }));
  EXPECT_EQ(bench.server->counters().timed_out, 1U);
}

}  // namespace
}  // namespace assay
