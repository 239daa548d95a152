// The simulator's half of bench.h.
#include "common/bench/bench.h"
#include "common/options/options.h"

namespace convladder {

Machine measure_machine() {
  throw UsageError("bench needs a GPU: the time that simulating takes says nothing about one");
}

}  // namespace convladder
