// Launches every lane pattern once, under a profiler, and prints their names in that order:
// "launched shared_read,16,bits_6". Its argument says which accesses.
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "common/measure/bank_patterns.h"

int main(int count, char** arguments) {
  using namespace convladder;
  const std::map<std::string, Accesses> choices = {
      {"shared", Accesses::kShared}, {"copies", Accesses::kCopies}, {"global", Accesses::kGlobal}};
  const auto choice = choices.find(count == 2 ? arguments[1] : "");
  if (choice == choices.end()) {
    std::fprintf(stderr, "usage: bank_patterns shared|copies|global\n");
    return 2;
  }
  try {
    launch_patterns(choice->second,
                    [](const std::string& kind, int bytes, const LanePattern& pattern) {
                      std::printf("launched %s,%d,%s\n", kind.c_str(), bytes, pattern.name.c_str());
                    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bank_patterns: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
