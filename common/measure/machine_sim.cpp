// The simulator's half of measure_machine().
#include "common/command/options.h"
#include "common/measure/bench.h"

namespace convladder {

Machine measure_machine() {
  throw UsageError("bench needs a GPU: the time that simulating takes says nothing about one");
}

}  // namespace convladder
