// What a command shows of itself: one line on stderr that says what is going on, where someone is
// watching, and the results on stdout as they come.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace convladder {

// Silent unless stderr is a terminal, so that logs and pipes hold results alone.
class Progress {
 public:
  explicit Progress(int64_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;

  // "[done/total] what", over the line before; cut, since a line that wraps can't be written over.
  void show(int64_t done, const std::string& what) {
    if (!terminal_) return;
    fmt::print(stderr, "\r\033[K{:.79}", fmt::format("[{}/{}] {}", done, total_, what));
    std::fflush(stderr);
  }
  // Call before printing anything else.
  void clear() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  int64_t total_;
  bool terminal_;
};

// Hands on what was printed to stdout. Throws std::runtime_error where that can't be done: a full
// disk, a stream that is closed.
inline void flush_output() {
  errno = 0;  // stays so where it was an earlier print that failed
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw std::runtime_error("standard output can't be written" + reason);
}

}  // namespace convladder
