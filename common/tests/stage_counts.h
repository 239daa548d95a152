// The counts of a stage on a problem, for tests of them.
#pragma once

#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/check/trial.h"
#include "common/core/stage.h"
#include "common/simulator/counts.h"

namespace convladder {

// common/tests/data/counted_problems.csv.
std::vector<Problem> counted_problems();

// Runs the stage once on random data, under observation, and checks the result.
std::vector<simulator::KernelCounts> count_stage(const Stage& stage, const Problem& problem,
                                                 const Placement& placement = {});

}  // namespace convladder
