// What `run` computes: AlexNet's first layer on a photograph, or any other problem.
#pragma once

#include <string>

#include "common/check/reference.h"
#include "common/check/test_data.h"
#include "common/harness/options.h"

namespace convladder {

struct RunJob {
  std::string name;    // of the problem
  std::string source;  // of the data, for the reader
  ConvShape shape;
  TestData data;
  bool bias = true, relu = false;
  bool photo = false;   // AlexNet's layer on 3 channels and 96 filters: pictures make sense
  bool random = false;  // every tensor is: rounding errors are as small as error_factor() says

  HostProblem problem() const {
    return {shape, data.input.data(), data.filters.data(), bias ? data.bias.data() : nullptr, relu};
  }
};

// The options below, without those of stage_options() and problem_options().
std::vector<OptionSpec> job_options();

// With a named problem or single extents: that problem, random data uniform in [-1, 1). Else the
// photograph. Then --input, --filters and --bias replace tensors. Throws UsageError,
// InvalidArgument, or std::runtime_error naming the file, its shape and the shape needed.
RunJob make_job(const Options& options);

}  // namespace convladder
