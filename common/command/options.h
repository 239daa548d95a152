// The command line of a command, over CLI11.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace convladder {

// The command line can't be carried out as written: the program exits with status 2.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct OptionSpec {
  std::string name;   // with its dashes: "--seed"
  std::string value;  // what the help calls the value; empty: the option takes none
  std::string help;   // one line
  bool repeats = false;
};

class Options {
 public:
  // Throws UsageError for an unknown option, a missing value, or one that is given twice and doesn't
  // repeat. --help is always there; -h stands for it.
  Options(const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments);

  bool has(const std::string& name) const { return given_.count(name) > 0; }
  // What --help prints after the command's own words: one line per option. Empty unless it was given.
  const std::string& help() const { return help_; }
  // All values of a repeatable option, in order.
  std::vector<std::string> all(const std::string& name) const;
  // The value given, else `fallback`.
  std::string text(const std::string& name, const std::string& fallback = "") const;
  // As text(); throw UsageError, naming the option and the value, unless it is a whole number
  // (respectively a finite number) from `least` to `most`.
  int64_t integer(const std::string& name, int64_t fallback, int64_t least = INT64_MIN,
                  int64_t most = INT64_MAX) const;
  double number(const std::string& name, double fallback, double least) const;

 private:
  std::map<std::string, std::vector<std::string>> given_;
  std::string help_;
};

}  // namespace convladder
