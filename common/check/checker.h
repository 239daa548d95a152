// Stages held against the reference, by both rules: what `check` does with every problem.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/check/record.h"
#include "common/check/reference.h"
#include "common/check/trial.h"

namespace convladder {

// A legal problem, and how it is put to the stages.
struct CheckCase {
  std::string name;  // of the problem
  ConvShape shape;
  bool bias = true, relu = false;
  uint64_t seed = 1;  // of the data
  Placement placement;
  Guards guards = Guards::kZones;
};

class Checker {
 public:
  using Show = std::function<void(const std::string&)>;
  using Ended = std::function<void(const Record&)>;

  // `show` is called with what is going on.
  explicit Checker(Show show) : show_(std::move(show)) {}

  // Runs every stage on small integers, wide integers and real numbers. One record per stage: fail
  // as well where something kept it from running, skipped where ReLU is asked of a stage that has
  // none. `ended` is called with each record as soon as it stands, in the order of the stages. Throws
  // nothing for what goes wrong with a stage.
  std::vector<Record> check(
      const CheckCase& c, const std::vector<Stage>& stages,
      const Ended& ended = [](const Record&) {});

  // What last kept a stage from running, as opposed to a result that is wrong; empty if all ran.
  const std::string& error() const { return error_; }
  // An earlier error made the GPU unusable: no stage can run any more.
  bool device_lost() const { return lost_; }

 private:
  void set(Record& record, const char* status, const std::string& why);
  // Calls `next` when done with a stage.
  void check_kind(DataKind kind, const CheckCase& c, const std::vector<Stage>& stages,
                  std::vector<Record>& records, const std::function<void()>& next);
  void check_stage(const Stage& stage, DataKind kind, const CheckCase& c, const HostProblem& host,
                   const Reference& reference, Record& record);

  Show show_;
  std::string error_;
  bool lost_ = false;
};

}  // namespace convladder
