// Launches every lane pattern once, under a profiler, and prints their names in that order:
// "launched shared_read,16,bits_6". With the argument `copies`: the asynchronous copies; with `global`:
// reads and writes of global memory.
#include <cstdio>
#include <cstring>
#include <exception>

#include "common/profile/bank_patterns.h"

int main(int count, char** arguments) {
  const bool copies = count == 2 && std::strcmp(arguments[1], "copies") == 0;
  const bool global = count == 2 && std::strcmp(arguments[1], "global") == 0;
  if (count > 1 && !copies && !global) {
    std::fprintf(stderr, "usage: bank_patterns [copies|global]\n");
    return 2;
  }
  try {
    const auto print = [](const std::string& kind, int bytes,
                          const convladder::LanePattern& pattern) {
      std::printf("launched %s,%d,%s\n", kind.c_str(), bytes, pattern.name.c_str());
    };
    if (global) {
      convladder::launch_global_patterns(print);
    } else {
      copies ? convladder::launch_copy_patterns(print) : convladder::launch_lane_patterns(print);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bank_patterns: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
