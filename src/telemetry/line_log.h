// A file of lines written by its own thread, so that whoever logs never waits for a disk.
//
// Bounded: lines beyond the queue are dropped and counted. A full disk drops lines too; `on_trouble` hears
// of the first failure and of the recovery, not of every line. Two lines never run together: after a partial
// write the next one starts with a line end. A pipe whose reader is gone counts as a full disk (ignore
// SIGPIPE). Thread safety: any thread. Failure: open() names the file and the system's reason. Cost: write()
// moves the line under a short lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"

namespace assay {

struct LineLogConfig {
  std::string path;  // "-": standard output
  size_t max_queued_bytes = size_t{4} << 20;
  std::function<void(const std::string& sentence)> on_trouble;  // on the log's thread
};

class LineLog {
 public:
  static Result<std::unique_ptr<LineLog>> open(LineLogConfig config);
  virtual ~LineLog() = default;  // writes what waits, then ends

  // `line` without its end. False: dropped.
  virtual bool write(std::string line) = 0;
  // Opens the path anew before the next line: a file that was moved away is left. When that fails, lines go
  // on to the old file.
  virtual void reopen() = 0;
  // Returns when every line written before has reached the file or was dropped.
  virtual void flush() = 0;
  virtual int64_t dropped_lines() const = 0;
};

}  // namespace assay
