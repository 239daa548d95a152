// The file that `profile --trace` writes: every memory instruction of the stages' kernels with what
// it costs, the addresses of some warps, and the source they are of. Counting simulator only.
//
// {"format": "convladder trace", "version": 3, "problem", "shape", "bias", "stages": [{
//   "stage", "files": {"01_naive/naive.cu": its text},
//   "memory": [{"name": "input", "begin", "bytes"}],    global memory: where the tensors lie
//   "patterns": [[0, 16, 32, ...]],                     32 addresses less the first lane's; null: the
//                                                       lane takes no part
//   "services": [[lanes, kind, lanes, kind, ...]],      sectors or wavefronts of one access: a bit for
//                                                       each lane served; kind: 0 needed, 1 a bank
//                                                       conflict, 2 one where a copy reads the L1
//   "kernels": [{"kernel", "launches", "grid": [x, y, z], "block": [x, y, z],
//     "shared": [{"name", "begin", "bytes"}],           shared memory: where the variables lie
//     "instructions": [{"line": "01_naive/naive.cu:41", "inlined": [line] of the functions called
//                       there, the innermost first, "space": "global" or "shared", "operation":
//                       "load", "store" or "copy", "bytes": per lane, "memory": the tensor's or
//                       variable's name, "requests", "cost": sectors or wavefronts, "conflicts",
//                       "unique_bytes" (of global memory): of all launches}],
//     "warps": [{"block", "warp", "cut": numbers of the instructions of which only the first times
//                are here, "runs": one list of numbers for each instruction}]}]}]}
//
// A run is what one instruction does several times in a row with the same pattern and services, addresses
// growing by the same step: times, services, pattern, first lane's address, step. A copy has three more,
// of its other end, where it comes from or goes to: pattern, address of the first lane that has one (zeros
// come from nowhere), step; only the low 16 bits are meant.
#pragma once

#include <string>
#include <vector>

#include "common/check/files.h"
#include "common/check/trial.h"
#include "common/command/options.h"
#include "common/command/workload.h"
#include "common/simulator/counting/warp_trace.h"

namespace convladder {

// --trace, --block, --warp
std::vector<OptionSpec> trace_options();

// What `profile` writes, stage by stage. Does nothing unless --trace is given.
class TraceFile {
 public:
  // Throws std::runtime_error where the file can't be written, UsageError for --block or --warp
  // without --trace.
  explicit TraceFile(const Options& options);

  void begin() const;  // a stage's run
  // `counts`: of its kernels. Throws UsageError where no kernel of the stage has the block and warp asked for.
  void end(const std::string& stage, const Trial& trial,
           const std::vector<simulator::KernelCounts>& counts);
  void write(const Workload& job) const;

 private:
  std::string path_;  // empty: no trace is asked for
  simulator::TraceSample sample_;
  std::vector<Json> records_;
};

}  // namespace convladder
