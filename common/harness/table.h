// Plain-text tables: first columns left, numbers right, one rule under the header.
#pragma once

#include <string>
#include <vector>

namespace convladder {

enum class Align { kLeft, kRight };

class Table {
 public:
  void add_column(const std::string& header, Align align);
  // One cell per column, ASCII.
  void add_row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::string> headers_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// printf's %.*f and %.*g as strings.
std::string fixed(double value, int digits);
std::string significant(double value, int digits);

}  // namespace convladder
