// What the program's own file says of its code: names, lines of the source, instructions. binutils
// read it (readelf, addr2line, objdump), which come with every compiler; without them nothing is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convladder {

// ---- Names ----

struct Variable {
  std::string name;  // without namespaces: "table"
  const char* begin;
  std::size_t bytes;
};

// The variables that lie between two addresses of a program.
std::vector<Variable> variables_between(const char* begin, const char* end);

struct SharedVariable {
  std::string name;
  std::size_t begin, bytes;  // in the program's thread-local storage
  bool is_own = true;        // the kernel's own, and not any kernel's
};

struct Symbols {
  std::string name = "?";  // without namespaces, template arguments and parameters: "conv2d_naive"
  std::size_t bytes = 0;   // of code
  std::vector<SharedVariable> shared;
  std::vector<SharedVariable> guards;  // the compiler's, beside variables of classes
};

// "conv2d_naive", of the name that the compiler gave it.
std::string kernel_name(const std::string& mangled);

// The function that begins at `address`, and its __shared__ variables.
Symbols read_symbols(const void* address);

// ---- Lines ----

// A file's path as all messages have it: from the source tree, or else from the folder that we are in.
std::string shown_path(const std::string& path);

// A place in the program's code as an offset, which fits 32 bits.
uint32_t code_offset(const void* return_address);

// "01_naive/naive.cu:41" of the call that returns there; without debugging information "code at
// 0x1234".
std::string source_line(uint32_t code_offset);

// The same, and where the place is in a function that was inlined, the line of the kernel that has called it:
// "core/hopper.h:57 (called at 14_warpgroups/warpgroups.cu:88)".
std::string called_line(uint32_t code_offset);

// The lines of many at once, which takes no longer: each place has its line first, then, where that is in
// a function that was inlined, the lines that called it.
std::vector<std::vector<std::string>> source_lines(const std::vector<uint32_t>& code_offsets);

// Of the calls that are under way on this thread, the innermost outside of the simulator: "FILE:LINE".
std::string calling_line();

// ---- Instructions ----

// Whether the code of so many bytes calls no function but those whose names fit the (extended) regular
// expression.
bool calls_only(const void* code, std::size_t bytes, const std::string& names);

// The first jump behind a place in the code: with it a basic block ends. Or the place itself.
uint32_t next_jump(uint32_t code_offset);

// Where an empty loop begins, an instruction that jumps to itself: compilers give it the line of anything. So the
// jump that leads to it, or the instruction before. Else, the place itself.
uint32_t before_empty_loop(uint32_t code_offset);

// How often a kernel's code multiplies floats. The compiler calls no function of ours before a
// multiplication, but one at the begin of every basic block: __sanitizer_cov_trace_pc().
struct BlockProducts {
  uintptr_t begin = 0;
  std::size_t size = 0;
  const uint16_t* of_block = nullptr;  // by the offset of the call's return; null: not known

  // Products of floats in the block whose call returns to `pc`; 0 where that is no such block's.
  unsigned of(const void* pc) const {
    const std::size_t at = reinterpret_cast<uintptr_t>(pc) - begin;
    return at < size ? of_block[at] : 0;
  }
};

// Reads the kernel that begins at `kernel` and has so many bytes of code; the table is kept until the
// program ends.
BlockProducts read_products(const void* kernel, std::size_t bytes);

}  // namespace convladder
