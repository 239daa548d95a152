// The simulator's half of bench.h.
#include "common/harness/bench.h"
#include "common/harness/options.h"

namespace convladder {

Machine measure_machine() {
  throw UsageError("bench needs a GPU: the time that simulating takes says nothing about one");
}

}  // namespace convladder
