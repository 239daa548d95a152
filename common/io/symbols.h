// Names for addresses of code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convladder {

struct SharedVariable {
  std::string name;
  std::size_t begin, bytes;  // in the program's thread-local storage
};

struct Symbols {
  std::string name = "?";  // without namespaces, template arguments and parameters: "conv2d_naive"
  std::size_t bytes = 0;   // of code
  std::vector<SharedVariable> shared;
};

// What the program's symbols say of the function that begins at `address`, and of its __shared__
// variables. Nothing when the program holds none (it was stripped).
Symbols read_symbols(const void* address);

}  // namespace convladder
