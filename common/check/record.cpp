#include "common/check/record.h"

#include <nlohmann/json.hpp>

#include "common/check/backend.h"
#include "common/core/choice.h"

namespace convladder {

Record new_record(const Stage& stage, const std::string& problem, bool relu) {
  Record record;
  record.stage = stage.name;
  record.problem = problem;
  record.message = relu && !stage.fuses_relu ? "does not fuse ReLU" : lack_of(stage);
  if (!record.message.empty()) record.status = "skipped";
  return record;
}

void begin(Record& record, const Stage& stage, const ConvShape& shape) {
  try {
    require_taken(stage, shape);
    if (stage.name != std::string(auto_stage().name)) return;
    const Choice choice = choose(shape);
    record.message = std::string(choice.stage->name) + ": " + choice.why;
  } catch (const NotForShape& error) {
    record.status = "skipped";
    record.message = error.what();
  }
}

bool is_not_for_shape(const Record& record) { return record.message.rfind(NOT_FOR_SHAPE, 0) == 0; }

Json to_json(const Record& record) {
  return {{"version", RUN_VERSION},    {"stage", record.stage},
          {"problem", record.problem}, {"backend", backend_name()},
          {"status", record.status},   {"max_error_ratio", record.max_error_ratio},
          {"message", record.message}};
}

}  // namespace convladder
