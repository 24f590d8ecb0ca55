#include "tune/calibrated_store.h"

#include <xxhash.h>

#include <cstring>
#include <system_error>
#include <type_traits>

#include "base/atomic_file.h"
#include "base/file.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "assay calibrated weights 1\n";
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

// Values one after the other, hashed as they go.
class Writer {
 public:
  explicit Writer(AtomicFile& file) : file_(file), hash_(XXH64_createState()) { XXH64_reset(hash_, 0); }
  ~Writer() { XXH64_freeState(hash_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Result<void> bytes(const void* data, size_t size) {
    XXH64_update(hash_, data, size);
    return file_.write(std::span(static_cast<const std::byte*>(data), size));
  }
  Result<void> number(uint64_t value) { return bytes(&value, sizeof(value)); }
  Result<void> block(const void* data, size_t size) {
    RETURN_IF_ERROR(number(size));
    return bytes(data, size);
  }
  Result<void> buffer(const AlignedBuffer& buffer) { return block(buffer.data(), buffer.size()); }
  uint64_t hash() const { return XXH64_digest(hash_); }

 private:
  AtomicFile& file_;
  XXH64_state_t* hash_;
};

// Reads what Writer wrote; after a failure everything is empty.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool failed() const { return failed_; }
  uint64_t number() {
    uint64_t value = 0;
    const auto part = take(sizeof(value));
    if (!part.empty()) std::memcpy(&value, part.data(), sizeof(value));
    return value;
  }
  std::span<const std::byte> block() { return take(number()); }
  std::string text() {
    const auto part = block();
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  AlignedBuffer buffer() {
    const auto part = block();
    auto made = AlignedBuffer::allocate(part.size());
    if (!made) {
      failed_ = true;
      return {};
    }
    if (!part.empty()) std::memcpy(made->data(), part.data(), part.size());
    return std::move(*made);
  }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto part = left_.first(size);
    left_ = left_.subspan(size);
    return part;
  }

  std::span<const std::byte> left_;
  bool failed_ = false;
};

Result<void> write_matrix(Writer& out, const PackedMatrix& m) {
  for (const int64_t value : {static_cast<int64_t>(m.format), m.n_outputs, m.n_inputs, m.padded_inputs,
                              int64_t{m.group}, static_cast<int64_t>(m.scale_format), int64_t{m.zero_point}}) {
    RETURN_IF_ERROR(out.number(static_cast<uint64_t>(value)));
  }
  for (const AlignedBuffer* buffer : {&m.codes, &m.scales, &m.minimums, &m.blocks.tile_starts,
                                      &m.blocks.group_starts, &m.blocks.columns}) {
    RETURN_IF_ERROR(out.buffer(*buffer));
  }
  return {};
}

PackedMatrix read_matrix(Reader& in) {
  PackedMatrix m;
  m.format = static_cast<Format>(in.number());
  m.n_outputs = static_cast<int64_t>(in.number());
  m.n_inputs = static_cast<int64_t>(in.number());
  m.padded_inputs = static_cast<int64_t>(in.number());
  m.group = static_cast<int>(in.number());
  m.scale_format = static_cast<Format>(in.number());
  m.zero_point = static_cast<int>(in.number());
  for (AlignedBuffer* buffer : {&m.codes, &m.scales, &m.minimums, &m.blocks.tile_starts,
                                &m.blocks.group_starts, &m.blocks.columns}) {
    *buffer = in.buffer();
  }
  return m;
}

// Everything between the magic and the checksum.
Result<void> write_content(Writer& out, const std::string& key, const CalibratedWeights& weights) {
  RETURN_IF_ERROR(out.block(key.data(), key.size()));
  RETURN_IF_ERROR(out.number(weights.matrices.size()));
  for (const auto& [name, matrix] : weights.matrices) {
    RETURN_IF_ERROR(out.block(name.data(), name.size()));
    RETURN_IF_ERROR(write_matrix(out, matrix));
  }
  RETURN_IF_ERROR(out.number(weights.vectors.size()));
  for (const auto& [name, vector] : weights.vectors) {
    RETURN_IF_ERROR(out.block(name.data(), name.size()));
    RETURN_IF_ERROR(out.block(vector.data(), vector.size() * sizeof(float)));
  }
  return {};
}

std::optional<CalibratedWeights> read_content(std::span<const std::byte> bytes, const std::string& key) {
  Reader in(bytes);
  if (in.text() != key) return std::nullopt;
  CalibratedWeights weights;
  const uint64_t n_matrices = in.number();
  for (uint64_t i = 0; i < n_matrices && !in.failed(); ++i) {
    std::string name = in.text();
    weights.matrices.emplace(std::move(name), read_matrix(in));
  }
  const uint64_t n_vectors = in.number();
  for (uint64_t i = 0; i < n_vectors && !in.failed(); ++i) {
    std::string name = in.text();
    const auto values = in.block();
    std::vector<float> vector(values.size() / sizeof(float));
    std::memcpy(vector.data(), values.data(), vector.size() * sizeof(float));
    weights.vectors.emplace(std::move(name), std::move(vector));
  }
  if (in.failed()) return std::nullopt;
  return weights;
}

}  // namespace

Result<CalibratedStore> CalibratedStore::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    return fail(ErrorCode::kIo, folder.string(), "cannot create this folder: {}",
                error ? error.message() : "a file is in its place");
  }
  return CalibratedStore(folder);
}

std::filesystem::path CalibratedStore::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.weights", XXH64(key.data(), key.size(), 0));
}

std::optional<CalibratedWeights> CalibratedStore::find(const std::string& key) const {
  const auto file = MappedFile::open(file_of(key));
  if (!file) return std::nullopt;
  const std::span<const std::byte> bytes = file->bytes();
  uint64_t checksum = 0;
  if (bytes.size() < kMagic.size() + sizeof(checksum) || bytes.size() > kMostBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return std::nullopt;
  }
  const auto content = bytes.subspan(kMagic.size(), bytes.size() - kMagic.size() - sizeof(checksum));
  std::memcpy(&checksum, content.data() + content.size(), sizeof(checksum));
  if (XXH64(content.data(), content.size(), 0) != checksum) return std::nullopt;
  return read_content(content, key);
}

Result<void> CalibratedStore::keep(const std::string& key, const CalibratedWeights& weights) const {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(file_of(key)));
  RETURN_IF_ERROR(file.write(kMagic));
  uint64_t checksum = 0;
  {
    Writer out(file);
    RETURN_IF_ERROR(write_content(out, key, weights));
    checksum = out.hash();
  }
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(&checksum, 1))));
  return file.commit();
}

}  // namespace assay
