// Internal: bytes in and out of one non-blocking socket, plain or under TLS, holding no buffer while nothing
// is under way. A connection waits for the socket itself and then calls; no call blocks.
// Ownership: the descriptor stays its owner's and must outlive the channel. Not thread safe. Asio-free.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "http/tls_context.h"

namespace assay::http_internal {

class Channel {
 public:
  enum class Status {
    kDone,       // n bytes were moved, or the handshake is complete
    kWantsRead,  // call again when the socket can be read
    kWantsWrite,
    kEnded,      // the peer said that nothing follows
    kPlainText,  // shake_hands() alone: the peer speaks HTTP without TLS
    kFailed,
  };
  struct Outcome {
    Status status = Status::kFailed;
    size_t n = 0;
  };

  virtual ~Channel() = default;
  virtual Outcome shake_hands() = 0;
  virtual Outcome read(std::span<char> bytes) = 0;
  // After kWantsWrite the same bytes must be offered again, wherever they lie then.
  virtual Outcome write(std::string_view bytes) = 0;
  // True when read() would give bytes although the socket need not become readable for them.
  virtual bool has_pending() const = 0;
  virtual void end() = 0;  // tells the peer that nothing follows, as far as the protocol has words for it
};

std::unique_ptr<Channel> make_plain_channel(int descriptor);
// Server side. Null when OpenSSL is out of memory.
std::unique_ptr<Channel> make_tls_channel(int descriptor, const TlsContext& context);

}  // namespace assay::http_internal
