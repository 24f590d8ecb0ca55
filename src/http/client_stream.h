// Internal: a blocking byte stream to one host, plain or TLS, every operation with a deadline. Not thread
// safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/url.h"

namespace assay::http_internal {

class ClientStream {
 public:
  static Result<std::unique_ptr<ClientStream>> connect(const Url& url, const std::string& ca_file,
                                                       double seconds);
  virtual ~ClientStream() = default;

  virtual Result<size_t> write_some(std::string_view bytes, double seconds) = 0;
  virtual Result<size_t> read_some(std::span<char> bytes,
                                   double seconds) = 0;  // 0: the peer has ended its side
};

}  // namespace assay::http_internal
