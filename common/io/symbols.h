// Names for addresses of code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convladder {

// The name of the function that begins at `address`, without namespaces, template arguments and
// parameters: "conv2d_naive". "?" when the program holds no symbols (it was stripped).
std::string symbol_name(const void* address);

// The bytes of code of the function that begins at `address`; 0 when there are no symbols.
std::size_t function_bytes(const void* address);

struct SharedVariable {
  std::string name;
  std::size_t begin, bytes;  // in the program's thread-local storage
};

// The __shared__ variables of the kernel that begins at `kernel`. None when there are no symbols.
std::vector<SharedVariable> shared_variables(const void* kernel);

}  // namespace convladder
