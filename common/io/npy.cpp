#include "common/io/npy.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "common/io/atomic_file.h"
#include "common/io/quoted.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "float32 is read and written as it lies");

namespace convladder {
namespace {

// Layout of a file: MAGIC, major and minor version, the header's length (2 bytes in version 1, 4 in
// version 2, little-endian), the header (a Python dictionary as text), the elements.
constexpr char MAGIC[] = "\x93NUMPY";
constexpr std::size_t MAGIC_BYTES = 6;
constexpr std::size_t HEADER_ALIGNMENT = 64;  // the elements start at a multiple of this

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

struct Header {
  std::string dtype;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, keys in any order.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    std::set<std::string> keys;
    expect('{');
    while (!accept('}')) {
      const std::string key = parse_string();
      expect(':');
      const bool is_new = keys.insert(key).second;
      if (key == "descr" && is_new) {
        if (peek() == '[') fail(path_, "dtype is a record, must be float32 ('<f4')");
        header.dtype = parse_string();
      } else if (key == "fortran_order" && is_new) {
        header.fortran_order = parse_bool();
      } else if (key == "shape" && is_new) {
        header.shape = parse_tuple();
      } else {
        bad_header("key " + quoted(key) + " is unknown or doubled");
      }
      if (!accept(',') && peek() != '}') bad_header("',' or '}' expected");
    }
    if (keys.size() < 3) bad_header("it must have descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void bad_header(const std::string& reason) const {
    fail(path_, "bad .npy header at character " + std::to_string(at_) + ": " + reason);
  }

  char peek() {  // the next character that is no white space; 0 at the end
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) bad_header(std::string("'") + c + "' expected");
  }

  std::string parse_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad_header("a string expected");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) bad_header("a string does not end");
    std::string result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  bool parse_bool() {
    const bool value = peek() == 'T';
    const std::string word = value ? "True" : "False";
    if (text_.compare(at_, word.size(), word) != 0) bad_header("True or False expected");
    at_ += word.size();
    return value;
  }

  int64_t parse_extent() {
    if (peek() < '0' || peek() > '9') bad_header("an extent expected");
    int64_t extent = 0;
    const char* const begin = text_.data();
    const auto [end, error] = std::from_chars(begin + at_, begin + text_.size(), extent);
    if (error != std::errc()) bad_header("an extent passes 64 bits");
    at_ = end - begin;
    return extent;
  }

  std::vector<int64_t> parse_tuple() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(parse_extent());
      if (!accept(',') && peek() != ')') bad_header("',' or ')' expected");
    }
    return extents;
  }

  const std::string& path_;
  const std::string& text_;
  std::size_t at_ = 0;
};

// Bytes of a tensor of float32; throws when they pass 64 bits.
uint64_t tensor_bytes(const std::string& path, const std::vector<int64_t>& shape) {
  uint64_t bytes = sizeof(float);
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      fail(path, "the extents in its header multiply to more than 64 bits hold");
    }
  }
  return bytes;
}

std::string header_text(const std::vector<int64_t>& shape) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(shape[i]) + (i + 1 < shape.size() ? "," : "");
  }
  text += shape.size() == 1 ? ",), }" : "), }";  // a tuple of one: (5,)
  const std::size_t before = MAGIC_BYTES + 4;    // version and length
  const std::size_t end = before + text.size() + 1;
  text.append((HEADER_ALIGNMENT - end % HEADER_ALIGNMENT) % HEADER_ALIGNMENT, ' ');
  return text + '\n';
}

}  // namespace

Array read_npy(const std::string& path) {
  std::error_code error;
  const uint64_t file_size =
      std::filesystem::file_size(path, error);  // an error for folders and pipes, too
  if (error) fail(path, "can't be read: " + error.message());
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "can't be read");

  unsigned char start[MAGIC_BYTES + 2 + 4] = {};
  file.read(reinterpret_cast<char*>(start), MAGIC_BYTES + 2);
  if (!file || std::memcmp(start, MAGIC, MAGIC_BYTES) != 0) fail(path, "is no .npy file");
  const int version = start[MAGIC_BYTES];
  if (version != 1 && version != 2) {
    fail(path, ".npy version " + std::to_string(version) + " is unknown, must be 1 or 2");
  }
  const int length_bytes = version == 1 ? 2 : 4;
  const unsigned char* length = start + MAGIC_BYTES + 2;
  file.read(reinterpret_cast<char*>(start) + MAGIC_BYTES + 2, length_bytes);
  const uint64_t header_bytes =
      length[0] | length[1] << 8 | uint64_t{length[2]} << 16 | uint64_t{length[3]} << 24;
  const uint64_t header_end = MAGIC_BYTES + 2 + static_cast<uint64_t>(length_bytes) + header_bytes;
  if (!file || header_end > file_size) fail(path, "is truncated within its header");
  std::string text(header_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(header_bytes));

  const Header header = HeaderParser(path, text).parse();
  if (header.dtype != "<f4") {
    fail(path, "dtype is " + quoted(header.dtype) + ", must be float32 ('<f4')");
  }
  if (header.fortran_order) fail(path, "is in Fortran order, must be in C order");
  const uint64_t bytes = tensor_bytes(path, header.shape);
  const uint64_t held = file_size - header_end;
  if (held != bytes) {  // before the allocation: a header may claim anything
    fail(path, (held < bytes ? "is truncated: " : "has a tail: ") + std::to_string(held) +
                   " bytes of elements, its shape needs " + std::to_string(bytes));
  }
  Array array;
  array.shape = header.shape;
  array.data.resize(bytes / sizeof(float));
  file.read(reinterpret_cast<char*>(array.data.data()), static_cast<std::streamsize>(bytes));
  if (!file) fail(path, "can't be read");
  return array;
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* data) {
  const std::string text = header_text(shape);
  const unsigned char version_and_length[] = {1, 0, static_cast<unsigned char>(text.size() & 255),
                                              static_cast<unsigned char>(text.size() >> 8)};
  AtomicFile file(path);
  file.write(MAGIC, MAGIC_BYTES);
  file.write(version_and_length, sizeof version_and_length);
  file.write(text.data(), text.size());
  file.write(data, tensor_bytes(path, shape));
  file.commit();
}

}  // namespace convladder
