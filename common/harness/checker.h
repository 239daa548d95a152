// Stages held against the reference, by both rules: what `check` does with every problem.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/check/reference.h"
#include "common/harness/commands.h"
#include "common/harness/trial.h"

namespace convladder {

// A legal problem, and how it is put to the stages.
struct CheckCase {
  std::string name;  // of the problem
  ConvShape shape;
  bool bias = true, relu = false;
  uint64_t seed = 1;  // of the data
  Placement placement;
  Guards guards = Guards::kZones;
  int filters_per_thread =
      0;  // in stages with filter tiles: 4, 8, 12, 16, or 0: the stage's choice
};

class Checker {
 public:
  using Show = std::function<void(const std::string&)>;

  // `show` is told what is going on.
  explicit Checker(Show show) : show_(std::move(show)) {}

  // Runs every stage on small integers, wide integers and real numbers. One record per stage: fail
  // as well where something kept it from running, skipped where ReLU is asked of a stage that has
  // none. Throws nothing for what goes wrong with a stage.
  std::vector<Record> check(const CheckCase& c, const std::vector<Stage>& stages);

  // What last kept a stage from running, as opposed to a result that is wrong; empty if all ran.
  const std::string& error() const { return error_; }
  // An earlier error made the GPU unusable: no stage can run any more.
  bool device_lost() const { return lost_; }

 private:
  struct Kind;
  static const Kind KINDS[];

  void set(Record& record, const char* status, const std::string& why);
  void check_kind(const Kind& kind, const CheckCase& c, const std::vector<Stage>& stages,
                  std::vector<Record>& records);
  void check_stage(const Stage& stage, const Kind& kind, const CheckCase& c,
                   const HostProblem& host, const Reference& reference, Record& record);

  Show show_;
  std::string error_;
  bool lost_ = false;
};

}  // namespace convladder
