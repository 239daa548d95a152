#include "common/check/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "common/check/files.h"
#include "common/core/extents.h"

namespace convladder {
namespace {

constexpr std::size_t LONGEST_QUOTE = 60, MOST_NAMES = 3, MOST_BYTES = 1 << 24;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// 'text', fit for a message: it may come from a file that is not what it seems.
std::string in_quotes(const std::string& text) {
  std::string shown = text.substr(0, LONGEST_QUOTE);
  std::replace_if(shown.begin(), shown.end(), is_control, '?');
  return "'" + shown + (text.size() > LONGEST_QUOTE ? "...'" : "'");
}

// The line at which a reader is; every complaint names it.
struct Place {
  const std::string& path;
  int64_t line;

  [[noreturn]] void fail(std::size_t column, const std::string& reason) const {
    throw std::runtime_error(fmt::format("{}:{}:{}: {}", path, line, column, reason));
  }
};

struct Field {
  std::string text;
  std::size_t column;  // of its first character in the line, from 1
};

// The fields of a line, without the blanks around them. A field may stand in quotes, within which ""
// is one quote.
std::vector<Field> split(const std::string& line, const Place& place) {
  std::vector<Field> fields;
  for (std::size_t i = 0;; ++i) {  // one field per turn; i ends on the comma behind it
    i = std::min(line.find_first_not_of(" \t", i), line.size());
    Field field = {"", i + 1};
    if (i < line.size() && line[i] == '"') {
      do {
        const std::size_t end = line.find('"', ++i);
        if (end == std::string::npos) {
          place.fail(field.column, "the quoted field does not end in this line");
        }
        field.text += line.substr(i, end - i);
        i = end + 1;
        if (i < line.size() && line[i] == '"') field.text += '"';
      } while (i < line.size() && line[i] == '"');
      i = std::min(line.find_first_not_of(" \t", i), line.size());
      if (i < line.size() && line[i] != ',') place.fail(i + 1, "',' expected behind the quotes");
    } else {
      const std::size_t end = std::min(line.find(',', i), line.size());
      const std::string text = line.substr(i, end - i);
      field.text = text.substr(0, text.find_last_not_of(" \t") + 1);
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

// Whether one letter too few, too many or another makes the one of the other.
bool is_misspelled(const std::string& word, const std::string& right) {
  const auto ends = std::mismatch(word.begin(), word.end(), right.begin(), right.end());
  const auto rest = std::mismatch(word.rbegin(), std::make_reverse_iterator(ends.first),
                                  right.rbegin(), std::make_reverse_iterator(ends.second));
  return right.size() > 3 && rest.first.base() - ends.first < 2 &&
         rest.second.base() - ends.second < 2;
}

// What a column that is not known is probably meant to be; "" where nobody can tell.
std::string meant_by(const std::string& name) {
  std::string lower = name;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
  for (const Extent& e : EXTENTS) {
    if (name == e.name) return "";
  }
  for (const Extent& e : EXTENTS) {
    if (lower == e.name || lower + "s" == e.name || is_misspelled(lower, e.name)) return e.name;
  }
  for (const std::string axes : {"stride", "pad", "dil"}) {  // "stride", "Padding": for both axes
    if (lower.rfind(axes, 0) == 0 || is_misspelled(lower, axes)) {
      return axes + "_h and " + axes + "_w";
    }
  }
  for (const char* const known : {"bias", "name"}) {
    if (name != known && (lower == known || is_misspelled(lower, known))) return known;
  }
  return "";
}

Columns read_header(const std::vector<Field>& fields, const Place& place) {
  Columns columns;
  const Field* twice = nullptr;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].text;
    if (!columns.emplace(name, i).second && !name.empty() && !twice) twice = &fields[i];
    const std::string meant = meant_by(name);
    if (meant.empty()) continue;  // a remark
    fmt::print(stderr, "convladder: warning: {}:{}:{}: column {} is ignored; there is {}\n",
               place.path, place.line, fields[i].column, in_quotes(name), meant);
  }
  for (const Extent& e : EXTENTS) {
    if (is_needed(e) && columns.count(e.name) == 0) {
      place.fail(1, fmt::format("the header has no column '{}'", e.name));
    }
  }
  if (twice) {  // only now: the numbers of a row are no header
    place.fail(twice->column, "column " + in_quotes(twice->text) + " stands here a second time");
  }
  return columns;
}

int64_t parse_integer(const Field& field, const std::string& name, const Place& place) {
  int64_t value = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    place.fail(field.column, name + " = " + in_quotes(field.text) + " does not fit 64 bits");
  }
  if (error != std::errc() || stop != end) {
    place.fail(field.column, name + " = " + in_quotes(field.text) + " is not an integer");
  }
  return value;
}

Problem read_row(const std::vector<Field>& fields, const Columns& columns, const Place& place) {
  // The field of a column; null when the column is absent or, if it may be, the field empty.
  const auto find = [&](const char* name, bool needed = false) -> const Field* {
    const auto column = columns.find(name);
    const bool there = column != columns.end() && (needed || !fields[column->second].text.empty());
    return there ? &fields[column->second] : nullptr;
  };
  Problem problem;
  for (const Extent& e : EXTENTS) {
    const Field* field = find(e.name, is_needed(e));
    if (field) problem.arguments.*e.given = parse_integer(*field, e.name, place);
  }
  if (const Field* bias = find("bias")) {
    if (bias->text != "0" && bias->text != "1") {
      place.fail(bias->column, "bias = " + in_quotes(bias->text) + " must be 0 or 1");
    }
    problem.bias = bias->text == "1";
  }
  problem.name = fmt::format("row{}", place.line);
  if (const Field* name = find("name")) {
    problem.name = name->text;
    if (std::any_of(problem.name.begin(), problem.name.end(), is_control)) {
      place.fail(name->column, "name = " + in_quotes(problem.name) + " has a control character");
    }
  }
  return problem;
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

// What a filter sees beyond one row and column of padding is padding alone.
bool halve_pads(ConvArguments& a) {
  const auto half = [](int64_t pad, int64_t span) {
    return std::min(pad, std::max(pad / 2, span));
  };
  const int64_t h = half(a.pad_h, a.dil_h * (a.r - 1)), w = half(a.pad_w, a.dil_w * (a.s - 1));
  if (h == a.pad_h && w == a.pad_w) return false;
  a.pad_h = h, a.pad_w = w;
  return true;
}

}  // namespace

std::vector<Problem> read_problems(const std::string& path) {
  if (size_to_read(path) > MOST_BYTES)
    throw std::runtime_error(path + ": is too large for a list of problems");
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
    if (fields.size() != header.size()) {
      place.fail(1, fmt::format("{} fields, the header has {}", fields.size(), header.size()));
    }
    const Problem problem = read_row(fields, columns, place);
    const auto [other, is_new] = lines.emplace(problem.name, place.line);
    if (!is_new) {
      place.fail(1,
                 fmt::format("name {} is that of line {}", in_quotes(problem.name), other->second));
    }
    problems.push_back(problem);
  }
  if (file.bad()) throw std::runtime_error(path + ": can't be read");
  if (problems.empty()) throw std::runtime_error(path + ": has a header, but no problem");
  return problems;
}

// Without case, and without what joins words.
static std::string letters(const std::string& name) {
  std::string found;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      found += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return found;
}

const Problem& find_problem(const std::vector<Problem>& problems, const std::string& name,
                            const std::string& path) {
  std::string near;
  std::size_t found = 0;
  for (const Problem& problem : problems) {
    if (problem.name == name) return problem;
    const bool alike =
        !letters(name).empty() && letters(problem.name).find(letters(name)) != std::string::npos;
    if (alike && found++ < MOST_NAMES) near += (near.empty() ? "; near it: " : ", ") + problem.name;
  }
  if (near.empty()) near = ": none in " + path + " has a name like it";
  throw InvalidArgument("problem " + in_quotes(name) + " is unknown" + near);
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
  while (too_large() && halve_pads(reduced)) continue;
  return reduced;
}

}  // namespace convladder
