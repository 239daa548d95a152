// What became of one stage on one problem: what `check` and `run` print and write.
#pragma once

#include <limits>
#include <string>

#include "common/check/files.h"
#include "common/core/stage.h"

namespace convladder {

// The version of the JSON that `run` and `check` write. Increase it whenever a reader of that JSON would
// go wrong with what is written now.
constexpr int RUN_VERSION = 1;

struct Record {
  std::string stage, problem;
  std::string status;  // pass, fail, rejected or skipped
  double max_error_ratio = std::numeric_limits<double>::quiet_NaN();  // stays NaN if nothing ran
  std::string message;  // empty, or the reason, or what else to know
};

// The record of a stage that has not run yet; one that has no ReLU, but is asked for it, is skipped.
Record new_record(const Stage& stage, const std::string& problem, bool relu);

// What is known before the stage runs: "auto" says which one it chooses, and why; one that doesn't take the
// shape is skipped, with a message that begins with these words.
constexpr const char* NOT_FOR_SHAPE = "not for this shape";
void begin(Record& record, const Stage& stage, const ConvShape& shape);
bool is_not_for_shape(const Record& record);

// The members version, stage, problem, backend, status, max_error_ratio (null if nothing ran) and
// message.
Json to_json(const Record& record);

}  // namespace convladder
