#include "common/check/record.h"
#include "common/device/backend.h"

namespace convladder {

std::vector<std::pair<std::string, Json>> json_members(const Record& record) {
  return {{"stage", record.stage},
          {"problem", record.problem},
          {"backend", backend_name()},
          {"status", record.status},
          {"max_error_ratio", record.max_error_ratio},
          {"message", record.message}};
}

}  // namespace convladder
