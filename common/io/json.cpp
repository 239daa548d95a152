#include "common/io/json.h"

#include <charconv>
#include <cmath>

#include "common/io/atomic_file.h"

namespace convladder {
namespace {

// Length of the well-formed UTF-8 sequence at text[i]; 0 when the bytes there are none.
std::size_t utf8_length(const std::string& text, std::size_t i) {
  const auto byte = [&](std::size_t j) {
    return j < text.size() ? static_cast<unsigned char>(text[j]) : 0u;
  };
  const unsigned lead = byte(i);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  for (std::size_t j = 1; j < length; ++j) {
    if ((byte(i + j) & 0xC0) != 0x80) return 0;
  }
  // Too long for their value, surrogates, beyond U+10FFFF.
  const unsigned second = byte(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

std::string escape_control(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
  }
  constexpr char digits[] = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(c);
  return std::string("\\u00") + digits[code >> 4] + digits[code & 15];
}

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {  // a file name may hold any byte, JSON may not
      result += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    const char c = text[i];
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (length == 1 && c < ' ') {
      result += escape_control(c);
    } else {
      result.append(text, i, length);
    }
    i += length;
  }
  return result + '"';
}

}  // namespace

Json::Json(const char* text) : text_(quote(text)) {}
Json::Json(const std::string& text) : text_(quote(text)) {}
Json::Json(int number) : text_(std::to_string(number)) {}
Json::Json(int64_t number) : text_(std::to_string(number)) {}
Json::Json(bool value) : text_(value ? "true" : "false") {}

Json::Json(double number) {
  if (!std::isfinite(number)) {
    text_ = "null";
    return;
  }
  char digits[32];  // the shortest text that reads back as the same number; at most 24 characters
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text_.assign(digits, end);
}

Json Json::object(const std::vector<std::pair<std::string, Json>>& members) {
  Json result;
  for (const auto& [key, value] : members) {
    result.text_ += (result.text_.empty() ? "" : ", ") + quote(key) + ": " + value.text_;
  }
  result.text_ = "{" + result.text_ + "}";
  return result;
}

Json Json::array(const std::vector<Json>& items) {
  // Records stand one to a line, so that the file can be read and compared line by line.
  const bool records = !items.empty() && items.front().text_.front() == '{';
  Json result;
  for (const Json& item : items) {
    if (!result.text_.empty()) result.text_ += records ? ",\n" : ", ";
    result.text_ += item.text_;
  }
  result.text_ = records ? "[\n" + result.text_ + "\n]" : "[" + result.text_ + "]";
  return result;
}

void write_json(const std::string& path, const Json& value) {
  AtomicFile file(path);
  file.write(value.text().data(), value.text().size());
  file.write("\n", 1);
  file.commit();
}

}  // namespace convladder
