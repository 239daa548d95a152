// The commands of the program. Each takes what follows its name and returns the exit status: 0 when
// everything asked for passed, else 1. They throw UsageError for a command line that makes no sense
// and other exceptions for what goes wrong on the way; main() turns both into one line on stderr.
#pragma once

#include <string>
#include <vector>

namespace convladder {

int check_command(const std::vector<std::string>& arguments);
int run_command(const std::vector<std::string>& arguments);
int profile_command(const std::vector<std::string>& arguments);
int bench_command(const std::vector<std::string>& arguments);

}  // namespace convladder
