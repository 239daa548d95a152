#include "common/harness/table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace convladder {

void Table::add_column(const std::string& header, Align align) {
  headers_.push_back(header);
  align_.push_back(align);
}

void Table::add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::text() const {
  std::vector<std::size_t> width;
  for (std::size_t column = 0; column < headers_.size(); ++column) {
    std::size_t widest = headers_[column].size();
    for (const auto& row : rows_) widest = std::max(widest, row[column].size());
    width.push_back(widest);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      const std::string space(width[column] - cells[column].size(), ' ');
      if (column > 0) text += "  ";
      text += align_[column] == Align::kLeft ? cells[column] + space : space + cells[column];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::vector<std::string> rule;
  for (std::size_t columns : width) rule.emplace_back(columns, '-');
  std::string text = line(headers_) + line(rule);
  for (const auto& row : rows_) text += line(row);
  return text;
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
