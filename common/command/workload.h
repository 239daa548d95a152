// What `run` and `profile` compute: AlexNet's first layer on a photograph, or any other problem, with
// its tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/check/reference.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/command/options.h"

namespace convladder {

// A problem with the tensors that it speaks of.
struct Workload : HostProblem {
  Workload() = default;
  Workload(Workload&&) = default;  // a copy would point to the tensors of another

  std::string name;    // of the problem
  std::string source;  // of the data, for the reader
  TestData data;
  // The problem as it is named, where this one has fewer images or rows: cut down, or told to.
  std::optional<ConvShape> whole;
  Signs signs = Signs::kAny;
};

// The options below, without those of stage_options() and problem_options().
std::vector<OptionSpec> workload_options();

// A named problem, or single extents, get random data uniform in [-1, 1); else it is the photograph,
// unless both --input and --filters are given: the arrays then have stride 1 and no padding.
// --input, --filters and --bias replace tensors, and give the extents that no option gives. Throws
// UsageError, InvalidArgument, or std::runtime_error naming the file, its shape and the shape needed.
Workload make_workload(const Options& options);

}  // namespace convladder
