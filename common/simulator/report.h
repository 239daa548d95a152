// What a program of ./ladder sim leaves behind: its kernels, what was found in them, what they have counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace convladder::simulator {

struct Grid;

// Of the kernel; or, where that is empty, of the host's calls. What is found again at the same two places in the
// code is counted, and not described once more.
void add_finding(const std::string& kernel, uint32_t code, uint32_t other_code,
                 const std::function<std::string()>& describe);

// Where the program has called the runtime: "FILE:LINE".
std::string calling_line();

// Signals of the calling thread are handled on a stack besides its own, which may have overflowed.
void use_signal_stack();

int64_t finding_count();  // with those found again

// A launch that runs; or one that need not, as repeats_last_launch() says.
void note_launch(const Grid& grid, bool repeats);

// Of memory that a kernel, or the host, may not touch: what it is; empty where nothing is known.
std::string describe_address(const void* address);

}  // namespace convladder::simulator
