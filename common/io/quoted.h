// Text from a file, fit to stand in a one-line message.
#pragma once

#include <string>

namespace convladder {

// 'text', with control characters as '?' and no more than 60 bytes of it: it may come from a file
// that is not what it seems.
inline std::string quoted(const std::string& text) {
  constexpr std::size_t MOST = 60;
  std::string result = "'";
  for (const char c : text.substr(0, MOST)) {
    const auto code = static_cast<unsigned char>(c);
    result += code < 0x20 || code == 0x7F ? '?' : c;
  }
  return result + (text.size() > MOST ? "...'" : "'");
}

}  // namespace convladder
