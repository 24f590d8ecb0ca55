#include "cli/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace assay {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(state_->context != nullptr);
  CHECK_OP(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr), ==, 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  CHECK_OP(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()), ==, 1);
}

std::string Sha256::finish() {
  std::array<unsigned char, 32> digest{};
  CHECK_OP(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr), ==, 1);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  const auto failure = [&](std::string_view action) {
    const int code = errno;
    return fail(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path.string(), "cannot {}: {}",
                action, std::strerror(code));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure("open");
  Sha256 digest;
  std::vector<char> piece(size_t{1} << 20);
  ssize_t got = 0;
  while ((got = ::read(fd, piece.data(), piece.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    digest.update({piece.data(), static_cast<size_t>(got)});
  }
  if (got < 0) {
    auto error = failure("read");
    ::close(fd);
    return error;
  }
  ::close(fd);
  return digest.finish();
}

Result<std::string> parse_sha256(std::string_view text) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (text.size() != 64 || !digits) {
    return fail(ErrorCode::kInvalidArgument, "SHA-256", "expected 64 hexadecimal digits, found '{}'", text);
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace assay
