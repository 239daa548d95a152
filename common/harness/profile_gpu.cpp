// `profile` on a GPU is Nsight Compute's work, not the program's.
#include "common/harness/commands.h"
#include "common/harness/options.h"

namespace convladder {

int profile_command(const std::vector<std::string>&) {
  throw UsageError("profile counts in the simulator; on a GPU run 'ncu convladder run --once'");
}

}  // namespace convladder
