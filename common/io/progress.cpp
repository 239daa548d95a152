#include "common/io/progress.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace convladder {

Progress::Progress(int64_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::show(int64_t done, const std::string& what) {
  if (!terminal_) return;
  const std::string count = "[" + std::to_string(done) + "/" + std::to_string(total_) + "] ";
  // Cut to a usual terminal's width: a line that wraps can't be written over.
  std::fprintf(stderr, "\r\033[K%s", (count + what).substr(0, 79).c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void flush_output() {
  errno = 0;  // stays so where it was an earlier print that failed
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw std::runtime_error("standard output can't be written" + reason);
}

}  // namespace convladder
