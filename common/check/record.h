// What became of one stage on one problem: what `check` and `run` print and write.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/check/backend.h"
#include "common/core/stage.h"
#include "common/io/json.h"

namespace convladder {

// Of the JSON that `run` and `check` write. Increase it whenever a reader of that JSON would go wrong
// with what is written now.
constexpr int RUN_VERSION = 1;

struct Record {
  std::string stage, problem;
  std::string status;  // pass, fail, rejected or skipped
  double max_error_ratio = std::numeric_limits<double>::quiet_NaN();  // stays NaN if nothing ran
  std::string message;  // empty, or the reason, or what else to know
};

// Of a stage that has not run yet; one that has no ReLU, but is asked for it, is skipped.
inline Record new_record(const Stage& stage, const std::string& problem, bool relu) {
  Record record;
  record.stage = stage.name;
  record.problem = problem;
  if (relu && !stage.fuses_relu) {
    record.status = "skipped";
    record.message = "does not fuse ReLU";
  }
  return record;
}

// The members stage, problem, backend, status, max_error_ratio (null if nothing ran) and message.
inline std::vector<std::pair<std::string, Json>> json_members(const Record& record) {
  return {{"stage", record.stage},
          {"problem", record.problem},
          {"backend", backend_name()},
          {"status", record.status},
          {"max_error_ratio", record.max_error_ratio},
          {"message", record.message}};
}

}  // namespace convladder
