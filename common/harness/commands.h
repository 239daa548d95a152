// The commands of the program. Each takes what follows its name and returns the exit status: 0 when
// everything asked for passed, else 1. They throw UsageError for a command line that makes no sense
// and other exceptions for what goes wrong on the way; main() turns both into one line on stderr.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/io/json.h"

namespace convladder {

int check_command(const std::vector<std::string>& arguments);
int run_command(const std::vector<std::string>& arguments);
int profile_command(const std::vector<std::string>& arguments);
int bench_command(const std::vector<std::string>& arguments);

// Of the JSON that `profile` writes, and of that of `run` and `check`. Increase one whenever a
// reader of that JSON would go wrong with what is written now.
constexpr int PROFILE_VERSION = 1, RUN_VERSION = 1;

// What became of one stage on one problem. Both commands print and write these.
struct Record {
  std::string stage, problem;
  std::string status;  // pass, fail, rejected or skipped
  double max_error_ratio = std::numeric_limits<double>::quiet_NaN();  // stays NaN if nothing ran
  std::string message;  // empty, or the reason, or what else to know
};

// The members stage, problem, backend, status, max_error_ratio (null if nothing ran) and message.
std::vector<std::pair<std::string, Json>> json_members(const Record& record);

}  // namespace convladder
