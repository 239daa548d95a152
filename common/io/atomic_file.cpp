#include "common/io/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace convladder {

namespace {

constexpr int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

// The temporary file that must not outlive the program; empty: there is none.
char unfinished[PATH_MAX];

void remove_and_end(int signal) {
  unlink(unfinished);
  raise(signal);  // by its default action, once this function has returned: SA_RESETHAND
}

// Where a chain of symbolic links ends, whether there is a file or not.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int MOST = 40;  // as Linux has it
  std::error_code ignored;
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    if (links == MOST) throw std::runtime_error(path.string() + ": too many links");
    path = path.parent_path() / std::filesystem::read_symlink(path);
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(behind_links(path).string()) {
  std::error_code ignored;
  // Renaming onto /dev/stdout would replace the device.
  if (std::filesystem::exists(path_, ignored) &&
      !std::filesystem::is_regular_file(path_, ignored)) {
    throw std::runtime_error(path + ": is not a regular file, can't be replaced");
  }
  temporary_ = path_ + ".partial" + std::to_string(getpid());
  std::snprintf(unfinished, sizeof unfinished, "%s", temporary_.c_str());
  struct sigaction action = {};
  action.sa_handler = remove_and_end;
  action.sa_flags = SA_RESETHAND;
  for (int i = 0; i < 3; ++i) {  // but for those that someone else handles, or ignores (nohup)
    sigaction(SIGNALS[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_DFL) sigaction(SIGNALS[i], &action, nullptr);
  }
  stream_ = std::fopen(temporary_.c_str(), "wb");
  if (!stream_) {
    const int error = errno;
    forget();
    fail("can't be written", error);
  }
}

AtomicFile::~AtomicFile() {
  if (!stream_) return;
  std::fclose(stream_);
  std::remove(temporary_.c_str());
  forget();
}

// The signals are no longer this file's business.
void AtomicFile::forget() {
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &before_[i], nullptr);
  unfinished[0] = '\0';
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (bytes == 0) return;  // `data` may be null then, which fwrite may not be given
  if (std::fwrite(data, 1, bytes, stream_) != bytes) fail("can't be written", errno);
}

void AtomicFile::commit() {
  // A full disk may show only when the buffer is flushed.
  if (std::fflush(stream_) != 0 || std::ferror(stream_)) fail("can't be written", errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("can't be replaced", errno);
  std::fclose(stream_);
  stream_ = nullptr;
  forget();
}

void AtomicFile::fail(const char* what, int error) const {
  throw std::runtime_error(path_ + ": " + what + ": " + std::strerror(error));
}

void require_writable(const std::string& path) { const AtomicFile never_committed(path); }

}  // namespace convladder
