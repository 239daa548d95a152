// What several tests need: a folder of their own, the message of an exception, parts of texts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/check/problems.h"

namespace convladder {

// Made on construction, removed with all it holds on destruction.
class TempFolder {
 public:
  TempFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("convladder_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Writes `bytes` to a file called `name`; gives its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Files and folders in it.
  int entries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      count += !entry.path().empty();
    }
    return count;
  }

 private:
  std::filesystem::path folder_;
};

// The message of the exception of type Error that `body` throws; "" when it throws none (a test
// failure as well).
template <typename Error, typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text << "\nmissing: " << part;
}

// How GoogleTest shows a problem.
inline void PrintTo(const Problem& problem, std::ostream* out) { *out << problem.name; }

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) expect_contains(text, part);
}

}  // namespace convladder
