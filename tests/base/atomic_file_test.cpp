#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "assay-atomic-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t n_files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

TEST_F(AtomicFileTest, commit_replaces_the_target) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE(file->write("one "));
  ASSERT_TRUE(file->write("two"));
  EXPECT_EQ(file->written_bytes(), 7U);
  EXPECT_EQ(*read_file(path), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(*read_file(path), "one two");
  EXPECT_EQ(n_files(), 1U);
}

TEST_F(AtomicFileTest, without_commit_nothing_remains) {
  {
    auto file = AtomicFile::create(folder_ / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("half"));
    AtomicFile moved = std::move(*file);
    EXPECT_EQ(n_files(), 1U);
  }
  EXPECT_EQ(n_files(), 0U);
}

TEST_F(AtomicFileTest, missing_folder_is_not_found) {
  const auto file = AtomicFile::create(folder_ / "gone" / "a");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
}

// A limit on the size of files stands in for a full disk: the write fails half-way in the same manner.
TEST_F(AtomicFileTest, full_disk_leaves_the_old_file) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    const auto written = file->write(std::string(10000, 'x'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(written.error().where, path.string());
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(n_files(), 1U);
}

}  // namespace
}  // namespace assay
