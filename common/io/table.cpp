#include "common/io/table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace convladder {

void Table::add_column(const std::string& header, Align align, std::size_t least_width) {
  headers_.push_back(header);
  align_.push_back(align);
  width_.push_back(std::max(header.size(), least_width));
}

void Table::add_row(std::vector<std::string> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) width_[i] = std::max(width_[i], cells[i].size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::string text = header();
  for (const auto& cells : rows_) text += row(cells);
  return text;
}

std::string Table::header() const {
  std::vector<std::string> rule;
  for (std::size_t columns : width_) rule.emplace_back(columns, '-');
  return row(headers_) + row(rule);
}

std::string Table::row(const std::vector<std::string>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string space(width_[i] - std::min(width_[i], cells[i].size()), ' ');
    if (i > 0) text += "  ";
    text += align_[i] == Align::kLeft ? cells[i] + space : space + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string significant(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace convladder
