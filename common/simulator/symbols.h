// Names for addresses of code.
#pragma once

#include <string>

namespace convladder::simulator {

// The name of the function that begins at `address`, without namespaces, template arguments and
// parameters: "conv2d_naive". "?" when the program holds no symbols (it was stripped).
std::string symbol_name(const void* address);

}  // namespace convladder::simulator
