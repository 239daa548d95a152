#include "common/io/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace convladder {

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    // Renaming onto /dev/stdout would replace the device, and onto a link the link.
    if (!std::filesystem::is_regular_file(path, ignored)) {
      throw std::runtime_error(path + ": is not a regular file, can't be replaced");
    }
    path_ = std::filesystem::canonical(path).string();
  }
  temporary_ = path_ + ".partial" + std::to_string(getpid());
  stream_ = std::fopen(temporary_.c_str(), "wb");
  if (!stream_) fail("can't be written", errno);
}

AtomicFile::~AtomicFile() {
  if (!stream_) return;
  std::fclose(stream_);
  std::remove(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (bytes == 0) return;  // `data` may be null then, which fwrite may not be given
  if (std::fwrite(data, 1, bytes, stream_) != bytes) fail("can't be written", errno);
}

void AtomicFile::commit() {
  // A full disk may show only when the buffer is flushed.
  if (std::fflush(stream_) != 0 || std::ferror(stream_)) fail("can't be written", errno);
  std::fclose(stream_);
  stream_ = nullptr;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary_.c_str());
    fail("can't be replaced", error);
  }
}

void AtomicFile::fail(const char* what, int error) const {
  throw std::runtime_error(path_ + ": " + what + ": " + std::strerror(error));
}

void require_writable(const std::string& path) { const AtomicFile never_committed(path); }

}  // namespace convladder
