// What `profile` does differently on the two backends: profile_gpu.cpp, profile_sim.cpp.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/check/files.h"
#include "common/check/trial.h"
#include "common/command/options.h"
#include "common/command/workload.h"

namespace convladder {

class Profiler {
 public:
  virtual ~Profiler() = default;

  // Runs the trial of `stage` on `job`. Of each kernel, all its launches together, the members of its
  // record besides those that all records have: its name, its "launches", whether it is a "library"'s, and
  // what is known of it. In the order of their first launch.
  virtual std::vector<Json> profile(const Stage& stage, const Workload& job,
                                    const Trial& trial) = 0;

  // Writes what there is besides the records.
  virtual void finish(const Workload&) {}
};

// Enqueues the trial and waits for it: how often it launches each kernel, without a library's.
std::map<std::string, int> own_launches(const Trial& trial);

// What the help says of the backend, its options, and the `source` of its records.
struct ProfileBackend {
  const char* about;
  std::vector<OptionSpec> options;
  const char* source;
};
ProfileBackend profile_backend();

// Throws std::runtime_error where this build, or this machine, can't profile, and
// UsageError where options contradict each other.
std::unique_ptr<Profiler> make_profiler(const Options& options);

}  // namespace convladder
