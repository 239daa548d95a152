// What `run` computes: AlexNet's first layer on a photograph, or any other problem.
#pragma once

#include <optional>
#include <string>

#include "common/check/reference.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/command/options.h"

namespace convladder {

// A problem with the tensors that it speaks of.
struct RunJob : HostProblem {
  RunJob() = default;
  RunJob(RunJob&&) = default;  // a copy would point to the tensors of another

  std::string name;    // of the problem
  std::string source;  // of the data, for the reader
  TestData data;
  // The problem as it is named, where this one has fewer images or rows: cut down, or told to.
  std::optional<ConvShape> whole;
  Signs signs = Signs::kAny;
};

// The options below, without those of stage_options() and problem_options().
std::vector<OptionSpec> job_options();

// With a named problem or single extents: that problem, random data uniform in [-1, 1). Else the
// photograph. Then --input, --filters and --bias replace tensors. Throws UsageError,
// InvalidArgument, or std::runtime_error naming the file, its shape and the shape needed.
RunJob make_job(const Options& options);

// The output of a trial of the job's problem by the bounded rule, for signs like those of its
// data; and the trial's damage().
Comparison judge(const Trial& trial, const std::vector<float>& output, const RunJob& job,
                 const Reference& reference);

// The line of `profile` for a stage: "right", or "wrong: N of M outputs" and more.
std::string verdict(const Comparison& result, const ConvShape& shape);

}  // namespace convladder
