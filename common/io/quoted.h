// Text from a file, fit to stand in a one-line message.
#pragma once

#include <algorithm>
#include <string>

namespace convladder {

// Whether a terminal may obey the byte at text[i] instead of showing it: C0 and C1 control
// characters, the latter in UTF-8.
inline bool is_control(const std::string& text, std::size_t i) {
  const auto code = [&](std::size_t j) { return static_cast<unsigned char>(text[j]); };
  return code(i) < 0x20 || code(i) == 0x7F ||
         (code(i) == 0xC2 && i + 1 < text.size() && code(i + 1) >= 0x80 && code(i + 1) < 0xA0);
}

inline bool has_control(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text, i)) return true;
  }
  return false;
}

// 'text', with control characters as '?' and no more than 60 bytes of it: it may come from a file
// that is not what it seems.
inline std::string quoted(const std::string& text) {
  constexpr std::size_t MOST = 60;
  std::string result = "'";
  for (std::size_t i = 0; i < std::min(text.size(), MOST); ++i) {
    result += is_control(text, i) ? '?' : text[i];
  }
  return result + (text.size() > MOST ? "...'" : "'");
}

}  // namespace convladder
