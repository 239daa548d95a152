// Files that appear under their name only when they are complete.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>

namespace convladder {

// Writes to a temporary file in the same folder; commit() renames it. Without a commit (an
// exception on the way, or SIGINT, SIGTERM or SIGHUP where they end the program) the temporary file
// is removed and `path` stays as it was. Where `path` is a symbolic link, its target is written.
// Every function throws std::runtime_error naming the file. One at a time.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  std::FILE* stream() { return stream_; }
  void write(const void* data, std::size_t bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;
  void forget();

  std::string path_, temporary_;
  std::FILE* stream_ = nullptr;
  struct sigaction before_[3];
};

// Throws as AtomicFile does where `path` can't be written, and changes nothing: for commands that
// work for minutes before they write.
void require_writable(const std::string& path);

}  // namespace convladder
