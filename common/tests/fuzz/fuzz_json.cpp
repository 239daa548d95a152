// The writer of JSON: whatever bytes a file name or a message holds, the text that it gives must be
// a JSON string, and a number must come back as the same number. (JSON is read by Python alone.)
#include "common/io/json.h"

#include <cmath>
#include <cstring>

#include "common/tests/fuzz/fuzzing.h"

using namespace convladder;

namespace {

// UTF-8 of a code point.
std::string encode(uint32_t code) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(bits); };
  if (code < 0x80) return {byte(code)};
  const char last = byte(0x80 | (code & 0x3F));
  if (code < 0x800) return {byte(0xC0 | code >> 6), last};
  const char third = byte(0x80 | (code >> 6 & 0x3F));
  if (code < 0x10000) return {byte(0xE0 | code >> 12), third, last};
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), third, last};
}

// By encoding again what was decoded without a look at validity: only what is valid comes out the
// same.
bool is_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t code = length == 1 ? lead : lead & (0x7F >> length);
    for (std::size_t j = 1; j < length && i + j < text.size(); ++j) {
      code = code << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3F);
    }
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (surrogate || code > 0x10FFFF || encode(code) != text.substr(i, length)) return false;
    i += length;
  }
  return true;
}

// What a JSON string stands for (RFC 8259, section 7).
std::string decode(const std::string& json) {
  require(json.size() >= 2 && json.front() == '"' && json.back() == '"', "quotes at both ends");
  std::string text;
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {
    require(static_cast<unsigned char>(json[i]) >= 0x20, "no control character stands in the text");
    require(json[i] != '"', "no quote stands in the text");
    if (json[i] != '\\') {
      text += json[i];
      continue;
    }
    const char kind = json[++i];
    require(kind != '\0' && std::strchr("\"\\/bfnrtu", kind), "an escape that JSON has");
    require(i + 1 < json.size(), "the last quote is not escaped");
    if (kind == 'u') {
      require(i + 5 < json.size(), "four digits");
      text += encode(static_cast<uint32_t>(std::stoul(json.substr(i + 1, 4), nullptr, 16)));
      i += 4;
    } else {
      const char* const found = std::strchr("\"\"\\\\//b\bf\fn\nr\rt\t", kind);
      text += found[1];
    }
  }
  return text;
}

void check_text(const std::string& text) {
  const std::string decoded = decode(Json(text).text());
  require(is_utf8(decoded), "the text is UTF-8");
  if (is_utf8(text)) require(decoded == text, "valid text comes back as it was");
}

void check_number(double number) {
  const std::string text = Json(number).text();
  if (!std::isfinite(number)) return require(text == "null", "what is no number is null");
  require(text.find_first_not_of("0123456789+-.e") == std::string::npos, "a decimal number");
  const std::size_t digit = text[0] == '-' ? 1 : 0;
  require(text[digit] >= '0' && text[digit] <= '9', "a digit comes first");
  const double again = std::strtod(text.c_str(), nullptr);
  require(std::memcmp(&again, &number, sizeof number) == 0, "a number comes back as it was");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  check_text({reinterpret_cast<const char*>(data), size});
  double number = 0;
  std::memcpy(&number, data, size < sizeof number ? 0 : sizeof number);
  check_number(number);
  return 0;
}
