// One line on stderr that says what is going on, where someone is watching.
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

}  // namespace convladder
