#include "common/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

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

// ---- Reading ----

const char* JsonValue::name_of(Kind kind) {
  constexpr const char* NAMES[] = {"null", "true or false", "a number",
                                   "text", "a list",        "an object"};
  return NAMES[static_cast<int>(kind)];
}

const JsonValue& JsonValue::member(const std::string& name, Kind kind) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] != name) continue;
    if (items_[i].kind_ == kind) return items_[i];
    throw std::runtime_error("'" + name + "' is " + name_of(items_[i].kind_) + ", not " +
                             name_of(kind));
  }
  throw std::runtime_error("'" + name + "' is missing");
}

const std::string& JsonValue::text(const std::string& name) const {
  return member(name, Kind::kString).text_;
}
double JsonValue::number(const std::string& name) const {
  return member(name, Kind::kNumber).number_;
}
const std::vector<JsonValue>& JsonValue::items(const std::string& name) const {
  return member(name, Kind::kArray).items_;
}

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : at_(text.c_str()), end_(at_ + text.size()) {}

  JsonValue read_all() {
    JsonValue value = read_value(0);
    if (next() != '\0' || at_ != end_) fail("the end was expected");
    return value;
  }

 private:
  using Kind = JsonValue::Kind;
  static constexpr int MOST_NESTING = 100;

  [[noreturn]] void fail(const std::string& reason) const {
    throw std::runtime_error("not JSON, or cut short: " + reason + " at '" +
                             std::string(at_, std::min<std::size_t>(end_ - at_, 20)) + "'");
  }

  // The next character that is no space, or '\0' at the end.
  char next() {
    while (at_ != end_ && std::strchr(" \t\r\n", *at_) && *at_) ++at_;
    return *at_;
  }
  bool take(char c) { return next() == c && ++at_; }
  bool take(const char* word) {
    const std::size_t length = std::strlen(word);
    const bool there = std::strncmp(at_, word, length) == 0;
    if (there) at_ += length;
    return there;
  }

  // NOLINTBEGIN(misc-no-recursion): JSON nests, and MOST_NESTING ends it.
  JsonValue read_value(int nesting) {
    if (nesting > MOST_NESTING) fail("nested too deeply");
    JsonValue value;
    const char first = next();
    if (first == '{' || first == '[') {
      read_items(value, nesting);
    } else if (first == '"') {
      value.kind_ = Kind::kString;
      value.text_ = read_text();
    } else if (take("true") || take("false")) {
      value.kind_ = Kind::kBool;
    } else if (!take("null")) {
      value.kind_ = Kind::kNumber;
      const auto [after, error] = std::from_chars(at_, end_, value.number_);
      const bool digit = first == '-' || (first >= '0' && first <= '9');
      if (!digit || error != std::errc() || !std::isfinite(value.number_)) fail("no value");
      at_ = after;
    }
    return value;
  }

  void read_items(JsonValue& value, int nesting) {
    const bool object = take('{');
    value.kind_ = object ? Kind::kObject : Kind::kArray;
    if (!object) take('[');
    const char close = object ? '}' : ']';
    if (take(close)) return;
    do {
      if (object) {
        if (next() != '"') fail("a name was expected");
        value.names_.push_back(read_text());
        if (!take(':')) fail("':' was expected");
      }
      value.items_.push_back(read_value(nesting + 1));
    } while (take(','));
    if (!take(close)) fail(std::string("'") + close + "' was expected");
  }
  // NOLINTEND(misc-no-recursion)

  std::string read_text() {
    std::string text;
    for (++at_; at_ != end_ && *at_ != '"'; ++at_) {
      if (*at_ != '\\') {
        text += *at_;
        continue;
      }
      constexpr char ESCAPES[] = "\"\\/bfnrt", MEANINGS[] = "\"\\/\b\f\n\r\t";
      const char* const escape = ++at_ == end_ ? nullptr : std::strchr(ESCAPES, *at_);
      if (!escape || !*escape) fail("an escape that is not read here");
      text += MEANINGS[escape - ESCAPES];
    }
    if (at_ == end_) fail("text without its end");
    ++at_;
    return text;
  }

  const char* at_;
  const char* end_;
};

JsonValue read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": can't be read");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    return JsonReader(text).read_all();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

void write_json(const std::string& path, const Json& value) {
  AtomicFile file(path);
  file.write(value.text().data(), value.text().size());
  file.write("\n", 1);
  file.commit();
}

}  // namespace convladder
