// What the fuzz targets share. Each target is one function, LLVMFuzzerTestOneInput(), as libFuzzer
// and replay.cpp call it; a promise that is broken ends the program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace convladder {

inline void require(bool holds, const std::string& promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise.c_str());
  std::abort();
}

// A file in memory that holds `size` bytes: a reader takes it like any other, and it costs
// no disk.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0, "memfd_create works");
    require(write(descriptor_, data, size) == static_cast<ssize_t>(size), "the file takes all");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// A reader either takes the file or throws std::runtime_error with one line that names it. Any
// other exception, or a sanitizer's report, is a find.
template <typename Read>
void read_or_complain(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    require(message.rfind(path + ":", 0) == 0, "the message begins with the file: " + message);
    require(message.find('\n') == std::string::npos, "the message is one line: " + message);
  }
}

}  // namespace convladder

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);
