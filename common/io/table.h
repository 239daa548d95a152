// Plain-text tables: first columns left, numbers right, one rule under the header.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convladder {

enum class Align { kLeft, kRight };

class Table {
 public:
  // As wide as its widest cell, and no less than `least_width`.
  void add_column(const std::string& header, Align align, std::size_t least_width = 0);
  // One cell per column, ASCII.
  void add_row(std::vector<std::string> cells);
  std::string text() const;

  // For a table that is printed as it grows: the header with its rule, and a row, as wide as the
  // columns are so far.
  std::string header() const;
  std::string row(const std::vector<std::string>& cells) const;

 private:
  std::vector<std::string> headers_;
  std::vector<Align> align_;
  std::vector<std::size_t> width_;
  std::vector<std::vector<std::string>> rows_;
};

// printf's %.*f and %.*g as strings.
std::string fixed(double value, int digits);
std::string significant(double value, int digits);

}  // namespace convladder
