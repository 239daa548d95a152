#include "common/check/record.h"

#include <nlohmann/json.hpp>

#include "common/check/backend.h"

namespace convladder {

Record new_record(const Stage& stage, const std::string& problem, bool relu) {
  Record record;
  record.stage = stage.name;
  record.problem = problem;
  record.message = relu && !stage.fuses_relu ? "does not fuse ReLU" : lack_of(stage);
  if (!record.message.empty()) record.status = "skipped";
  return record;
}

Json to_json(const Record& record) {
  return {{"version", RUN_VERSION},    {"stage", record.stage},
          {"problem", record.problem}, {"backend", backend_name()},
          {"status", record.status},   {"max_error_ratio", record.max_error_ratio},
          {"message", record.message}};
}

}  // namespace convladder
