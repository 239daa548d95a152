#include "common/check/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace convladder {
namespace {

namespace fs = std::filesystem;

// Where a file is written before it has its name. Removed unless it was renamed.
struct Temporary {
  explicit Temporary(const std::string& given) {
    std::error_code ignored;
    fs::path target = given;
    // Renaming onto /dev/stdout would replace the device.
    if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) {
      throw std::runtime_error(
          given + ": is not a regular file; what is written replaces one when it is whole");
    }
    for (int links = 0; fs::is_symlink(target, ignored); ++links) {
      if (links == 40) throw std::runtime_error(given + ": its links go in a circle");
      target = target.parent_path() / fs::read_symlink(target);
    }
    path = target.string();
    const std::string name = target.filename().string();
    errno = ENAMETOOLONG;
    require(name.size() <= 255);
    partial = target.parent_path() / fmt::format("{}.partial{}", name.substr(0, 200), getpid());
    errno = 0;
    stream.open(partial, std::ios::binary);
    require(stream.good());
  }
  ~Temporary() {
    std::error_code ignored;
    if (!partial.empty()) fs::remove(partial, ignored);
  }

  void require(bool good) const {
    if (!good) throw std::runtime_error(path + ": can't be written: " + std::strerror(errno));
  }

  std::string path, partial;
  std::ofstream stream;
};

// On one line. Names may be bytes that are no UTF-8.
std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// An array with each of its items on one line; all else on one.
std::string list(const Json& value) {
  if (!value.is_array() || value.empty()) return dump(value);
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "[\n" : ",\n") + dump(item);
  return text + "\n]";
}

}  // namespace

Json number(double value) {
  const bool whole = std::abs(value) < 9e15 && value == std::floor(value);
  return whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

uint64_t size_to_read(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_other = fs::is_other(status);
  const uint64_t bytes = is_other ? 0 : fs::file_size(path, error);
  if (!is_other && !error) return bytes;
  throw std::runtime_error(
      path + ": can't be read: " + (is_other ? "it is no regular file" : error.message()));
}

void write_file(const std::string& path, const std::vector<std::string_view>& parts) {
  Temporary file(path);
  for (const std::string_view part : parts) {
    file.stream.write(part.data(), static_cast<std::streamsize>(part.size()));
  }
  file.stream.close();  // a full disk may show only now
  file.require(file.stream.good());
  if (std::error_code none; fs::exists(file.path, none)) {
    fs::permissions(file.partial, fs::status(file.path).permissions());
  }
  fs::rename(file.partial, file.path);
  file.partial.clear();
}

void write_json(const std::string& path, const Json& value) {
  std::string text = list(value);
  if (value.is_object()) {
    text.clear();
    for (const auto& [name, member] : value.items()) {
      text += fmt::format("{}\"{}\": {}", text.empty() ? "{\n" : ",\n", name, list(member));
    }
    text += "\n}";
  }
  write_file(path, {std::string_view(text), std::string_view("\n")});
}

void require_writable(const std::string& path) { const Temporary removed(path); }

}  // namespace convladder
