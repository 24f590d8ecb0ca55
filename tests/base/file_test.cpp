#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/random.h"
#include "base/temporary_directory.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string random_bytes(size_t n, uint64_t seed) {
  Random random(seed, "file");
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

void put(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// No file of this process can grow beyond `bytes` while this lives: what a full disk looks like, without one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limited{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST(ReadFile, returns_every_byte) {
  const test::TemporaryDirectory directory;
  for (const size_t size : {0, 1, 4095, 4096, 4097, 100000}) {
    const std::string content = random_bytes(size, size);
    put(directory / "file", content);
    EXPECT_EQ(read_file(directory / "file").value(), content) << size;
    EXPECT_EQ(read_file(directory / "file", size).value(), content) << size;
  }
}

TEST(ReadFile, reads_files_whose_size_the_system_does_not_say) {
  EXPECT_NE(read_file("/proc/self/status").value().find("VmRSS"), std::string::npos);
}

TEST(ReadFile, missing_file_is_not_found_by_name) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "x");
  for (const fs::path& path :
       {directory / "none", directory / "none" / "deeper", directory / "file" / "x", fs::path()}) {
    const auto result = read_file(path);
    ASSERT_FALSE(result.has_value()) << path;
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound) << result.error().message();
    EXPECT_EQ(result.error().where, path.string());
    EXPECT_EQ(MappedFile::open(path).error().code, ErrorCode::kNotFound);
  }
}

TEST(ReadFile, what_is_not_a_regular_file_is_refused_without_waiting) {
  const test::TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const fs::path& path :
       {directory.path(), directory / "pipe", fs::path("/dev/null"), fs::path("/dev/zero")}) {
    const auto result = read_file(path);
    ASSERT_FALSE(result.has_value()) << path;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().what.find("not a regular file"), std::string::npos);
    EXPECT_EQ(MappedFile::open(path).error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ReadFile, limit_is_kept) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "12345");
  EXPECT_EQ(read_file(directory / "file", 5).value(), "12345");
  const auto result = read_file(directory / "file", 4);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
  // Sizes that are not known beforehand, and sizes that nobody has the memory for.
  EXPECT_EQ(read_file("/proc/self/status", 10).error().code, ErrorCode::kResourceExhausted);
  put(directory / "sparse", "");
  fs::resize_file(directory / "sparse", uint64_t{1} << 40);
  EXPECT_EQ(read_file(directory / "sparse").error().code, ErrorCode::kResourceExhausted);
}

TEST(ReadFile, unreadable_file_is_an_error) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const test::TemporaryDirectory directory;
  put(directory / "secret", "x");
  fs::permissions(directory / "secret", fs::perms::none);
  EXPECT_EQ(read_file(directory / "secret").error().code, ErrorCode::kIo);
}

TEST(WriteFileAtomically, creates_and_replaces_leaving_nothing_else) {
  const test::TemporaryDirectory directory;
  for (const size_t size : {10, 0, 300000}) {
    const std::string content = random_bytes(size, size);
    ASSERT_TRUE(write_file_atomically(directory / "file", content).has_value());
    EXPECT_EQ(read_file(directory / "file").value(), content);
  }
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(WriteFileAtomically, works_on_a_bare_name_in_the_working_directory) {
  const test::TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  const auto written = write_file_atomically("plain", "content");
  fs::current_path(before);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(read_file(directory / "plain").value(), "content");
}

TEST(WriteFileAtomically, full_disk_leaves_the_old_file_and_no_other) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "old");
  const std::string content = random_bytes(100000, 1);
  Result<void> written;
  {
    const FileSizeLimit limit(50000);
    written = write_file_atomically(directory / "file", content);
  }
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, ErrorCode::kResourceExhausted) << written.error().message();
  EXPECT_EQ(written.error().where, (directory / "file").string());
  EXPECT_EQ(read_file(directory / "file").value(), "old");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(WriteFileAtomically, missing_or_impossible_directory_is_an_error) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "old");
  EXPECT_EQ(write_file_atomically(directory / "none" / "file", "x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(write_file_atomically(directory / "file" / "below", "x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(directory / "file").value(), "old");
}

TEST(WriteFileAtomically, directory_is_not_replaced) {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "folder");
  const auto written = write_file_atomically(directory / "folder", "x");
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().what.find("cannot replace"), std::string::npos) << written.error().message();
  EXPECT_TRUE(fs::is_directory(directory / "folder"));
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(WriteFileAtomically, read_only_directory_keeps_the_old_file) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "folder");
  put(directory / "folder" / "file", "old");
  fs::permissions(directory / "folder", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(write_file_atomically(directory / "folder" / "file", "new").error().code, ErrorCode::kIo);
  EXPECT_EQ(read_file(directory / "folder" / "file").value(), "old");
  fs::permissions(directory / "folder", fs::perms::owner_all);
}

TEST(WriteFileAtomically, mode_of_an_existing_file_is_kept) {
  const test::TemporaryDirectory directory;
  put(directory / "secret", "old");
  fs::permissions(directory / "secret", fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file_atomically(directory / "secret", "new").has_value());
  EXPECT_EQ(fs::status(directory / "secret").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file_atomically(directory / "open", "new").has_value());
  EXPECT_EQ(static_cast<int>(fs::status(directory / "open").permissions()), 0644);
}

TEST(WriteFileAtomically, symbolic_link_is_written_through) {
  const test::TemporaryDirectory directory;
  put(directory / "target", "old");
  fs::create_symlink("target", directory / "link");
  ASSERT_TRUE(write_file_atomically(directory / "link", "new").has_value());
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "target").value(), "new");
}

TEST(MappedFile, shows_every_byte_and_its_path) {
  const test::TemporaryDirectory directory;
  const std::string content = random_bytes(12345, 3);
  put(directory / "file", content);
  const auto mapped = MappedFile::open(directory / "file");
  ASSERT_TRUE(mapped.has_value());
  ASSERT_EQ(mapped->bytes().size(), content.size());
  EXPECT_EQ(std::memcmp(mapped->bytes().data(), content.data(), content.size()), 0);
  EXPECT_EQ(mapped->path(), directory / "file");
}

TEST(MappedFile, empty_file_maps_to_nothing) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "");
  const auto mapped = MappedFile::open(directory / "file");
  ASSERT_TRUE(mapped.has_value());
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST(MappedFile, keeps_the_old_content_when_the_file_is_replaced) {
  const test::TemporaryDirectory directory;
  put(directory / "file", "old");
  const auto mapped = MappedFile::open(directory / "file");
  ASSERT_TRUE(mapped.has_value());
  ASSERT_TRUE(write_file_atomically(directory / "file", "new").has_value());
  EXPECT_EQ(std::memcmp(mapped->bytes().data(), "old", 3), 0);
}

TEST(MappedFile, moves_without_losing_or_doubling_the_mapping) {
  const test::TemporaryDirectory directory;
  put(directory / "a", "aaa");
  put(directory / "b", "bbbb");
  MappedFile a = MappedFile::open(directory / "a").value();
  MappedFile b = MappedFile::open(directory / "b").value();
  MappedFile moved = std::move(a);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move): that it is empty is the claim
  EXPECT_EQ(moved.bytes().size(), 3U);
  moved = std::move(b);
  EXPECT_EQ(moved.bytes().size(), 4U);
  EXPECT_EQ(static_cast<char>(moved.bytes()[3]), 'b');
}

TEST(AssayHome, follows_the_environment) {
  const char* home_before = std::getenv("HOME");
  const char* own_before = std::getenv("ASSAY_HOME");
  const std::string home = home_before != nullptr ? home_before : "";
  const std::string own = own_before != nullptr ? own_before : "";
  ::setenv("HOME", "/home/someone", 1);
  ::setenv("ASSAY_HOME", "/data/assay", 1);
  EXPECT_EQ(assay_home(), "/data/assay");
  ::setenv("ASSAY_HOME", "", 1);
  EXPECT_EQ(assay_home(), "/home/someone/.cache/assay");
  ::unsetenv("ASSAY_HOME");
  EXPECT_EQ(assay_home(), "/home/someone/.cache/assay");
  ::unsetenv("HOME");
  EXPECT_EQ(assay_home(), ".assay");
  if (home_before != nullptr) ::setenv("HOME", home.c_str(), 1);
  if (own_before != nullptr) ::setenv("ASSAY_HOME", own.c_str(), 1);
}

}  // namespace
}  // namespace assay
