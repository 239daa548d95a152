#include "common/check/problems.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>

#include "common/core/extents.h"
#include "common/io/quoted.h"

namespace convladder {
namespace {

// Where a reader stands; every complaint names it.
struct Place {
  const std::string& path;
  int64_t line;

  [[noreturn]] void fail(std::size_t column, const std::string& reason) const {
    throw std::runtime_error(path + ":" + std::to_string(line) + ":" + std::to_string(column) +
                             ": " + reason);
  }
};

struct Field {
  std::string text;
  std::size_t column;  // of its first character in the line, from 1
};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The text of the quoted field whose opening quote is line[i]; "" stands for one quote. Leaves i
// behind the closing quote.
std::string read_quoted(const std::string& line, std::size_t& i, const Place& place) {
  const std::size_t start = i;
  std::string text;
  for (++i; i < line.size(); ++i) {
    if (line[i] != '"') {
      text += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      text += line[++i];
    } else {
      ++i;
      return text;
    }
  }
  place.fail(start + 1, "the quoted field does not end in this line");
}

std::vector<Field> split(const std::string& line, const Place& place) {
  std::vector<Field> fields;
  for (std::size_t i = 0;; ++i) {  // one field per turn; i ends on the comma behind it
    const std::size_t begin = std::min(line.find_first_not_of(" \t", i), line.size());
    Field field = {"", begin + 1};
    if (begin < line.size() && line[begin] == '"') {
      i = begin;
      field.text = read_quoted(line, i, place);
      i = std::min(line.find_first_not_of(" \t", i), line.size());
      if (i < line.size() && line[i] != ',') place.fail(i + 1, "',' expected behind the quotes");
    } else {
      const std::size_t end = std::min(line.find(',', i), line.size());
      field.text = trimmed(line.substr(i, end - i));
      i = end;
    }
    fields.push_back(field);
    if (i == line.size()) return fields;
  }
}

// The next line that is neither blank nor a comment, without its CR; false at the end of the file.
bool next_line(std::istream& file, std::string& line, int64_t& number) {
  while (std::getline(file, line)) {
    ++number;
    if (number == 1 && line.compare(0, 3, "\xEF\xBB\xBF") == 0)
      line.erase(0, 3);  // byte order mark
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line[first] != '#') return true;
  }
  return false;
}

using Columns = std::map<std::string, std::size_t>;  // name -> field number

// Letters to insert, delete or change to turn one text into the other (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Extents that come for both axes, under a name that one might give both.
constexpr const char* PAIRS[] = {"stride", "pad", "dil"};
// What may be missing.
std::vector<std::string> optional_columns() {
  std::vector<std::string> names = {"name", "bias"};
  for (const Extent& e : EXTENTS) {
    if (!is_needed(e)) names.push_back(e.name);
  }
  return names;
}

bool is_column(const std::string& name) {
  const std::vector<std::string> names = optional_columns();
  return name.size() == 1 || std::count(names.begin(), names.end(), name) > 0;
}

// The columns that the writer of an unknown one may have meant; empty: none.
std::string near_columns(std::string unknown) {
  for (char& c : unknown) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string pair : PAIRS) {  // "stride", "padding", "dilation_h"
    if (unknown.rfind(pair, 0) == 0) return pair + "_h and " + pair + "_w";
  }
  const std::vector<std::string> names = optional_columns();
  const std::string nearest = *std::min_element(
      names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return edit_distance(unknown, a) < edit_distance(unknown, b);
      });
  const std::size_t wrong = edit_distance(unknown, nearest);
  return wrong <= std::max<std::size_t>(1, nearest.size() / 3) ? nearest : "";
}

Columns read_header(const std::vector<Field>& fields, const Place& place) {
  Columns columns;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool is_new = columns.emplace(fields[i].text, i).second;
    if (!is_new && !fields[i].text.empty()) {
      place.fail(fields[i].column,
                 "column " + quoted(fields[i].text) + " stands here a second time");
    }
  }
  for (const Extent& e : EXTENTS) {
    if (is_needed(e) && columns.count(e.name) == 0) {
      place.fail(1, std::string("the header has no column '") + e.name + "'");
    }
  }
  for (const Field& field : fields) {
    const std::string near = is_column(field.text) ? "" : near_columns(field.text);
    if (near.empty()) continue;
    std::fprintf(stderr, "convladder: warning: %s:%lld:%zu: column %s is ignored; there is %s\n",
                 place.path.c_str(), static_cast<long long>(place.line), field.column,
                 quoted(field.text).c_str(), near.c_str());
  }
  return columns;
}

int64_t parse_integer(const Field& field, const std::string& name, const Place& place) {
  int64_t value = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    place.fail(field.column, name + " = " + quoted(field.text) + " does not fit 64 bits");
  }
  if (error != std::errc() || stop != end) {
    place.fail(field.column, name + " = " + quoted(field.text) + " is not an integer");
  }
  return value;
}

Problem read_row(const std::vector<Field>& fields, const Columns& columns, const Place& place) {
  // The field of a column; null when the column is absent or, if it may be, the field empty.
  const auto find = [&](const char* name) -> const Field* {
    const auto column = columns.find(name);
    return column == columns.end() ? nullptr : &fields[column->second];
  };
  Problem problem;
  ConvArguments& a = problem.arguments;
  for (const Extent& e : EXTENTS) {
    const Field* field = find(e.name);
    if (is_needed(e) || (field && !field->text.empty())) {
      a.*e.given = parse_integer(*field, e.name, place);
    }
  }
  const Field* bias = find("bias");
  if (bias && !bias->text.empty()) {
    if (bias->text != "0" && bias->text != "1") {
      place.fail(bias->column, "bias = " + quoted(bias->text) + " must be 0 or 1");
    }
    problem.bias = bias->text == "1";
  }
  const Field* name = find("name");
  if (name && has_control(name->text)) {
    place.fail(name->column, "name = " + quoted(name->text) + " has a control character");
  }
  problem.name = name && !name->text.empty() ? name->text : "row" + std::to_string(place.line);
  return problem;
}

// Up to three names that a user may have meant: a part of one was given, or a letter is wrong.
std::string near_names(const std::vector<Problem>& problems, const std::string& name) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const Problem& problem : problems) {
    const bool part = !name.empty() && problem.name.find(name) != std::string::npos;
    const std::size_t distance = part ? 0 : edit_distance(name, problem.name);
    if (distance <= std::max<std::size_t>(2, name.size() / 3)) {
      near.emplace_back(distance, problem.name);
    }
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string list;
  for (std::size_t i = 0; i < near.size() && i < 3; ++i) {
    list += (i == 0 ? "" : ", ") + near[i].second;
  }
  return list;
}

// About half of `extent`, as odd or even as it is; `extent` itself when that would pass below
// `least`.
int64_t halved(int64_t extent, int64_t least) {
  const int64_t half = extent / 2 + (extent - extent / 2) % 2;
  return half >= least ? half : extent;
}

// The input extent (h or w) whose output extent is about half of `output`. Going down by twice the
// stride for every two outputs leaves the remainder of the division as it is.
int64_t halved_input(int64_t input, int64_t output, int64_t stride, int64_t least) {
  const int64_t steps = (output - halved(output, least)) / 2;
  const int64_t most = (input - 1) / (2 * stride);  // one row of input stays
  return input - 2 * stride * std::min(steps, most);
}

// Halves P or Q, whichever is larger and can be; false when neither can.
bool halve_image(ConvArguments& a, int64_t least) {
  const ConvShape shape = make_conv_shape(a);
  const int64_t h = halved_input(a.h, shape.P(), a.stride_h, least);
  const int64_t w = halved_input(a.w, shape.Q(), a.stride_w, least);
  if (h == a.h && w == a.w) return false;
  const bool rows = w == a.w || (h != a.h && shape.P() >= shape.Q());
  (rows ? a.h : a.w) = rows ? h : w;
  return true;
}

// Halves the filters or the channels of a group, whichever are more and can be.
bool halve_channels(ConvArguments& a, int64_t least) {
  const int64_t k = a.groups * halved(a.k / a.groups, least);
  const int64_t c = a.groups * halved(a.c / a.groups, least);
  if (k == a.k && c == a.c) return false;
  const bool filters = c == a.c || (k != a.k && a.k >= a.c);
  (filters ? a.k : a.c) = filters ? k : c;
  return true;
}

// Leaves at least 2 groups where there were more than one.
bool halve_groups(ConvArguments& a) {
  const int64_t groups = halved(a.groups, 2);
  if (groups == a.groups) return false;
  a.k = a.k / a.groups * groups;
  a.c = a.c / a.groups * groups;
  a.groups = groups;
  return true;
}

}  // namespace

std::vector<Problem> read_problems(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw std::runtime_error(path + ": is a folder");
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": can't be read");

  std::string line;
  Place place = {path, 0};
  if (!next_line(file, line, place.line)) throw std::runtime_error(path + ": has no header line");
  const std::vector<Field> header = split(line, place);
  const Columns columns = read_header(header, place);
  std::vector<Problem> problems;
  std::map<std::string, int64_t> lines;  // of the names
  while (next_line(file, line, place.line)) {
    const std::vector<Field> fields = split(line, place);
    if (fields.size() < header.size()) {
      place.fail(line.size() + 1, "the line ends after " + std::to_string(fields.size()) +
                                      " fields, the header has " + std::to_string(header.size()));
    }
    if (fields.size() > header.size()) {
      place.fail(fields[header.size()].column,
                 "more fields than the header's " + std::to_string(header.size()));
    }
    const Problem problem = read_row(fields, columns, place);
    const auto [other, is_new] = lines.emplace(problem.name, place.line);
    if (!is_new) {
      place.fail(
          1, "name " + quoted(problem.name) + " is that of line " + std::to_string(other->second));
    }
    problems.push_back(problem);
  }
  if (file.bad()) throw std::runtime_error(path + ": can't be read");
  if (problems.empty()) throw std::runtime_error(path + ": has a header, but no problem");
  return problems;
}

const Problem& find_problem(const std::vector<Problem>& problems, const std::string& name) {
  for (const Problem& problem : problems) {
    if (problem.name == name) return problem;
  }
  const std::string near = near_names(problems, name);
  throw InvalidArgument("problem " + quoted(name) + " is unknown" +
                        (near.empty() ? "" : "; near it: " + near));
}

double multiply_adds(const ConvArguments& arguments) {
  try {
    return make_conv_shape(arguments).flops() / 2;
  } catch (const InvalidArgument&) {
    return 0;
  }
}

ConvArguments reduce(const ConvArguments& arguments, double max_macs) {
  ConvArguments reduced = arguments;
  const auto too_large = [&] { return multiply_adds(reduced) > max_macs; };
  if (too_large()) reduced.n = 1;
  for (const int64_t least : {16, 1}) {
    while (too_large() && halve_image(reduced, least)) continue;
    while (too_large() && halve_channels(reduced, least)) continue;
    while (too_large() && halve_groups(reduced)) continue;
  }
  return reduced;
}

}  // namespace convladder
