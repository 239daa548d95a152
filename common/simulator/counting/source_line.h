// Where in the source a call stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convladder::simulator {

// A place in the program's code as an offset, which fits 32 bits; and back to
// "01_naive/naive.cu:41" of the call that returns there. That asks binutils' addr2line; without it,
// or without debugging information: "code at 0x1234".
uint32_t code_offset(const void* return_address);
std::string source_line(uint32_t code_offset);

// Of many at once, which takes no longer: each with its line first, then, where that is in a function
// that was inlined, the lines that called it.
std::vector<std::vector<std::string>> source_lines(const std::vector<uint32_t>& code_offsets);

}  // namespace convladder::simulator
