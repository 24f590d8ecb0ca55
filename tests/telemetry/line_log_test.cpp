#include "telemetry/line_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class LineLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<LineLog> open(LineLogConfig config) {
    config.on_trouble = [this](const std::string& sentence) {
      const std::scoped_lock lock(mutex_);
      troubles_.push_back(sentence);
    };
    auto log = LineLog::open(std::move(config));
    if (!log) ADD_FAILURE() << log.error().message();
    return std::move(*log);
  }
  std::vector<std::string> troubles() {
    const std::scoped_lock lock(mutex_);
    return troubles_;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("assay-line-log-" + std::to_string(::getpid()));
  const fs::path path_ = folder_ / "log";
  std::mutex mutex_;
  std::vector<std::string> troubles_;
};

TEST_F(LineLogTest, lines_of_many_threads_arrive_whole) {
  auto log = open({.path = path_});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 500; ++i) ASSERT_TRUE(log->write(std::to_string(t) + " " + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  log->flush();
  const std::string text = *read_file(path_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2000);
  for (int t = 0; t < 4; ++t) {  // in order within a thread
    size_t at = 0;
    for (int i = 0; i < 500; ++i) {
      const std::string line = "\n" + std::to_string(t) + " " + std::to_string(i) + "\n";
      at = ("\n" + text).find(line, at);
      ASSERT_NE(at, std::string::npos) << line;
    }
  }
  EXPECT_EQ(log->dropped_lines(), 0);
  EXPECT_TRUE(troubles().empty());
}

TEST_F(LineLogTest, destructor_writes_what_waits_and_a_second_log_appends) {
  open({.path = path_})->write("one");
  open({.path = path_})->write("two");
  EXPECT_EQ(*read_file(path_), "one\ntwo\n");
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0007U, 0U) << "others may not read it";
}

TEST_F(LineLogTest, reopen_leaves_a_file_that_was_moved_away) {
  auto log = open({.path = path_});
  log->write("old");
  log->flush();
  fs::rename(path_, folder_ / "log.1");
  log->write("still old");
  log->flush();
  log->reopen();
  log->write("new");
  log->flush();
  EXPECT_EQ(*read_file(folder_ / "log.1"), "old\nstill old\n");
  EXPECT_EQ(*read_file(path_), "new\n");
}

TEST_F(LineLogTest, failed_reopen_goes_on_with_the_old_file) {
  auto log = open({.path = path_});
  log->write("before");
  log->flush();
  fs::rename(path_, folder_ / "log.1");
  fs::create_directory(path_);  // cannot be opened for writing
  log->reopen();
  log->write("after");
  log->flush();
  EXPECT_EQ(*read_file(folder_ / "log.1"), "before\nafter\n");
  ASSERT_EQ(troubles().size(), 1U);
  EXPECT_NE(troubles().front().find("old file"), std::string::npos);
}

TEST_F(LineLogTest, full_disk_is_said_once_and_lines_are_counted) {
  auto log = open({.path = "/dev/full"});
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(log->write("line"));
    log->flush();
  }
  EXPECT_EQ(log->dropped_lines(), 10);
  ASSERT_EQ(troubles().size(), 1U);
  EXPECT_NE(troubles().front().find("No space left"), std::string::npos) << troubles().front();
}

// A file size limit stands for the disk: it tears a line, and lifting it is space that came back.
TEST_F(LineLogTest, torn_line_ends_before_the_next_one_and_recovery_is_said) {
  auto log = open({.path = path_});
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  log->write("12345678");
  log->flush();
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited{.rlim_cur = 12, .rlim_max = unlimited.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  log->write("abcdefgh");  // room for three of its nine bytes
  log->flush();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  log->write("whole");
  log->flush();
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(*read_file(path_), "12345678\nabc\nwhole\n");
  EXPECT_EQ(log->dropped_lines(), 1);
  ASSERT_EQ(troubles().size(), 2U);
  EXPECT_NE(troubles().back().find("again"), std::string::npos);
}

TEST_F(LineLogTest, slow_reader_drops_lines_and_never_blocks_the_writer) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = open({.path = path_, .max_queued_bytes = 1 << 16});
  const std::string line(1023, 'x');
  int dropped = 0;
  for (int i = 0; i < 1000; ++i) dropped += log->write(line) ? 0 : 1;  // 1 MB into a pipe nobody reads
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(log->dropped_lines(), dropped);
  std::string got;
  std::vector<char> buffer(1 << 16);
  const auto kept = static_cast<size_t>(1000 - dropped) * 1024;
  while (got.size() < kept) {
    const ssize_t n = ::read(reader, buffer.data(), buffer.size());
    if (n > 0) got.append(buffer.data(), static_cast<size_t>(n));
  }
  log->flush();
  EXPECT_EQ(got.size(), kept);
  ::close(reader);
}

TEST_F(LineLogTest, path_that_cannot_be_opened_is_an_error) {
  const auto log = LineLog::open({.path = folder_ / "no" / "such" / "folder"});
  ASSERT_FALSE(log.has_value());
  EXPECT_EQ(log.error().code, ErrorCode::kIo);
  EXPECT_NE(log.error().message().find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace assay
