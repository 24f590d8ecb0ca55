// SHA-256 (FIPS 180-4, by OpenSSL) of bytes and files. Not thread safe; errors of the file are those of the
// system.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  std::string finish();  // 64 lower-case hexadecimal digits; once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads in pieces: constant memory, whatever the size.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

// 64 hexadecimal digits, lower-cased; kInvalidArgument for anything else.
Result<std::string> parse_sha256(std::string_view text);

}  // namespace assay
