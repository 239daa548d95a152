#include "common/check/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "common/check/files.h"

namespace convladder {
namespace {

constexpr std::string_view MAGIC("\x93NUMPY", 6);
constexpr std::size_t HEADER_ALIGNMENT = 64;
constexpr std::size_t MOST_HEADER_BYTES = 4096;  // std::regex takes stack for every character

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

// What a pattern with one group finds behind a key of the header, a Python dict.
std::string find_in_header(const std::string& path, const std::string& header,
                           const std::string& key, const std::string& pattern) {
  const std::string start = "." + key + ".: *";
  const std::regex keys(start);
  const std::sregex_iterator first(header.begin(), header.end(), keys), end;
  if (first == end) fail(path, "its header has no " + key);
  if (std::next(first) != end) fail(path, "its header has more than one " + key);
  std::smatch found;
  if (!std::regex_search(header, found, std::regex(start + pattern))) {
    fail(path, "its header's " + key + " is not as NumPy writes it");
  }
  return found[1];
}

std::vector<int64_t> parse_shape(const std::string& path, const std::string& text) {
  std::vector<int64_t> shape;
  const std::regex extent("[0-9]+");
  for (std::sregex_iterator i(text.begin(), text.end(), extent), end; i != end; ++i) {
    const std::string digits = i->str();
    int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
      fail(path, "an extent in its header, " + digits.substr(0, 30) + ", does not fit 64 bits");
    }
    shape.push_back(value);
  }
  return shape;
}

// Bytes of a tensor of float32; throws when they pass 64 bits.
uint64_t tensor_bytes(const std::string& path, const std::vector<int64_t>& shape) {
  uint64_t bytes = sizeof(float);
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      fail(path, "the extents in its header multiply to more than 64 bits hold");
    }
  }
  return bytes;
}

}  // namespace

Array read_npy(const std::string& path) {
  const uint64_t file_size = size_to_read(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "can't be read");

  unsigned char start[12] = {};
  file.read(reinterpret_cast<char*>(start), 8);
  if (!file || std::memcmp(start, MAGIC.data(), MAGIC.size()) != 0) fail(path, "is no .npy file");
  const int version = start[6];
  if (version != 1 && version != 2) {
    fail(path, fmt::format(".npy version {} is unknown, must be 1 or 2", version));
  }
  const int length_bytes = version == 1 ? 2 : 4;
  file.read(reinterpret_cast<char*>(start) + 8, length_bytes);
  const uint64_t header_bytes =
      start[8] | start[9] << 8 | uint64_t{start[10]} << 16 | uint64_t{start[11]} << 24;
  const uint64_t header_end = 8 + static_cast<uint64_t>(length_bytes) + header_bytes;
  if (!file || header_end > file_size) fail(path, "is truncated within its header");
  if (header_bytes > MOST_HEADER_BYTES) {
    fail(path,
         fmt::format("its header has {} bytes, more than {}", header_bytes, MOST_HEADER_BYTES));
  }
  std::string header(header_bytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));

  const std::string dtype = find_in_header(path, header, "descr", R"(['"]?([^'",]*))");
  if (dtype != "<f4") fail(path, "dtype is '" + dtype + "', must be float32 ('<f4')");
  if (find_in_header(path, header, "fortran_order", R"((\w+))") != "False") {
    fail(path, "is in Fortran order, must be in C order");
  }
  Array array;
  array.shape = parse_shape(path, find_in_header(path, header, "shape", R"(\(([0-9, ]*)\))"));
  const uint64_t bytes = tensor_bytes(path, array.shape), held = file_size - header_end;
  if (held != bytes) {  // before the allocation: a header may claim anything
    fail(path, fmt::format("{}{} bytes of elements, its shape needs {}",
                           held < bytes ? "is truncated: " : "has a tail: ", held, bytes));
  }
  array.data.resize(bytes / sizeof(float));
  file.read(reinterpret_cast<char*>(array.data.data()), static_cast<std::streamsize>(bytes));
  if (!file) fail(path, "can't be read");
  return array;
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* data) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t before = MAGIC.size() + 4;  // version and length
  const std::size_t end = before + header.size() + 1;
  header.append((HEADER_ALIGNMENT - end % HEADER_ALIGNMENT) % HEADER_ALIGNMENT, ' ');
  header += '\n';
  const char start[] = {1, 0, static_cast<char>(header.size() & 255),
                        static_cast<char>(header.size() >> 8)};
  const std::string_view elements(reinterpret_cast<const char*>(data), tensor_bytes(path, shape));
  write_file(path, {MAGIC, std::string_view(start, 4), std::string_view(header), elements});
}

}  // namespace convladder
