// The command line: a small parser of "--name value" and "--name=value".
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
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
};

class Options {
 public:
  // Throws UsageError for an unknown option, a missing or empty value, or a word that is no option.
  // -h stands for --help.
  Options(const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments);

  bool has(const std::string& name) const;
  // All values of a repeatable option, in order.
  std::vector<std::string> all(const std::string& name) const;
  // The last value given, else `fallback`.
  std::string text(const std::string& name, const std::string& fallback = "") const;
  // As text(); throw UsageError, naming the option and the value, unless it is a whole number
  // (respectively a finite number) from `least` to `most`.
  int64_t integer(const std::string& name, int64_t fallback, int64_t least = INT64_MIN,
                  int64_t most = INT64_MAX) const;
  double number(const std::string& name, double fallback, double least) const;

 private:
  std::vector<std::pair<std::string, std::string>> given_;
};

// Throws UsageError where one of the options `written` names the same file as another of them, or
// as one of the options `read`.
void require_different_files(const Options& options, const std::vector<std::string>& written,
                             const std::vector<std::string>& read);

// One line per option, for --help.
std::string describe(const std::vector<OptionSpec>& specs);

}  // namespace convladder
