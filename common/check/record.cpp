#include "common/check/record.h"

#include <nlohmann/json.hpp>

#include "common/check/backend.h"

namespace convladder {

Record new_record(const Stage& stage, const std::string& problem, bool relu) {
  Record record;
  record.stage = stage.name;
  record.problem = problem;
  if (relu && !stage.fuses_relu) {
    record.status = "skipped";
    record.message = "does not fuse ReLU";
  }
  return record;
}

Json to_json(const Record& record) {
  return {{"version", RUN_VERSION},    {"stage", record.stage},
          {"problem", record.problem}, {"backend", backend_name()},
          {"status", record.status},   {"max_error_ratio", record.max_error_ratio},
          {"message", record.message}};
}

}  // namespace convladder
