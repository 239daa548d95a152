// What a command shows of itself: one line on stderr that says what is going on, where someone is
// watching, and the results on stdout as they come.
#pragma once

#include <cstdint>
#include <string>

namespace convladder {

// Silent unless stderr is a terminal, so that logs and pipes hold results alone.
class Progress {
 public:
  explicit Progress(int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;

  // "[done/total] what", over the line before.
  void show(int64_t done, const std::string& what);
  // Call before printing anything else.
  void clear();

 private:
  int64_t total_;
  bool terminal_;
};

// Hands on what was printed to stdout. Throws std::runtime_error where that can't be done: a full
// disk, a stream that is closed.
void flush_output();

}  // namespace convladder
