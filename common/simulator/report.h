// What a program of ./ladder sim leaves behind: its kernels, what was found in them, what they have counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace convladder::simulator {

struct Grid;

// Of the kernel; or, where that is empty, of the host's calls. What is found again at the same two places in the
// code is counted, and not described once more. Returns how often it was found.
std::atomic<int64_t>& add_finding(const std::string& kernel, uint32_t code, uint32_t other_code,
                                  const std::function<std::string()>& describe);

// A signal ends the program, since the host has touched that memory, or (empty) for other reasons.
void end_program(const std::string& memory);

int64_t finding_count();  // with those found again

// Ends a program that launches before main() or after it: what a launch needs isn't there then.
void require_main();

// A launch that runs; or one that need not, as repeats_earlier_launch() says.
void note_launch(const Grid& grid, bool repeats);

}  // namespace convladder::simulator
