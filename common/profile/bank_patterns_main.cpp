// Launches every lane pattern once, under a profiler, and prints their names in that order:
// "shared_read,16,bits_6".
#include <cstdio>
#include <exception>

#include "common/profile/bank_patterns.h"

int main() {
  try {
    convladder::launch_lane_patterns(
        [](const std::string& kind, int bytes, const convladder::LanePattern& pattern) {
          std::printf("launched %s,%d,%s\n", kind.c_str(), bytes, pattern.name.c_str());
        });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bank_patterns: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
