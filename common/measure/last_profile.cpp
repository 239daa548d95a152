#include "common/measure/last_profile.h"

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "common/command/selection.h"
#include "common/io/atomic_file.h"

namespace convladder {
namespace {

// "build/report/last/sim/01_naive_n1_c3_224x224_..._bias"
std::string path_of(const std::string& stage, const RunJob& job) {
  std::string name =
      stage + " " + to_string(job.shape) + (job.bias ? " bias" : "") + (job.relu ? " relu" : "");
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return repository_path("build/report/last/sim/" + name);
}

}  // namespace

std::optional<Traffic> last_traffic(const std::string& stage, const RunJob& job) {
  std::ifstream file(path_of(stage, job));
  int version = 0;
  Traffic t;
  file >> version >> t.requests >> t.sectors >> t.wavefronts >> t.dram_bytes;
  return file && version == PROFILE_VERSION ? std::optional(t) : std::nullopt;
}

void keep_traffic(const std::string& stage, const RunJob& job, const Traffic& t) {
  const std::string path = path_of(stage, job);
  std::error_code ignored;  // if the folder is missing afterwards, the next lines say so
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  char line[128];
  const int length =
      std::snprintf(line, sizeof line, "%d %.17g %.17g %.17g %.17g\n", PROFILE_VERSION, t.requests,
                    t.sectors, t.wavefronts, t.dram_bytes);
  try {
    AtomicFile file(path);
    file.write(line, static_cast<std::size_t>(length));
    file.commit();
  } catch (const std::runtime_error& error) {
    std::printf("not kept for the next time: %s\n", error.what());
  }
}

}  // namespace convladder
