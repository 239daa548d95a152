#include "common/command/options.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace convladder {
namespace {

const OptionSpec& find_spec(const std::vector<OptionSpec>& specs, const std::string& name) {
  for (const OptionSpec& spec : specs) {
    if (spec.name == name) return spec;
  }
  throw UsageError("unknown option '" + name + "' (--help lists them)");
}

}  // namespace

Options::Options(const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i] == "-h" ? "--help" : arguments[i];
    if (word.rfind("--", 0) != 0) {
      throw UsageError("unexpected argument '" + word + "' (--help lists the options)");
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const OptionSpec& spec = find_spec(specs, name);
    const bool takes_value = !spec.value.empty(), holds_value = equals != std::string::npos;
    if (holds_value && !takes_value) throw UsageError(name + " takes no value");
    std::string value;
    if (holds_value) {
      value = word.substr(equals + 1);
    } else if (takes_value && i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (takes_value && value.empty()) {
      throw UsageError(name + " needs a value: " + name + " " + spec.value);
    }
    given_.emplace_back(name, value);
  }
}

std::vector<std::string> Options::all(const std::string& name) const {
  std::vector<std::string> values;
  for (const auto& [given, value] : given_) {
    if (given == name) values.push_back(value);
  }
  return values;
}

bool Options::has(const std::string& name) const { return !all(name).empty(); }

std::string Options::text(const std::string& name, const std::string& fallback) const {
  const std::vector<std::string> values = all(name);
  return values.empty() ? fallback : values.back();
}

int64_t Options::integer(const std::string& name, int64_t fallback, int64_t least,
                         int64_t most) const {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  char* end = nullptr;
  errno = 0;
  const long long result = std::strtoll(value.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) {
    throw UsageError(name + " = '" + value + "': must be a whole number");
  }
  if (result < least) {
    throw UsageError(name + " = " + value + ": must be at least " + std::to_string(least));
  }
  if (result > most) {
    throw UsageError(name + " = " + value + ": must be at most " + std::to_string(most));
  }
  return result;
}

double Options::number(const std::string& name, double fallback, double least) const {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  char* end = nullptr;
  const double result = std::strtod(value.c_str(), &end);
  if (*end != '\0' || !std::isfinite(result) || result < least) {
    throw UsageError(name + " = '" + value + "': must be a number, at least " +
                     std::to_string(least));
  }
  return result;
}

void require_different_files(const Options& options, const std::vector<std::string>& written,
                             const std::vector<std::string>& read) {
  std::vector<std::string> names = written;
  names.insert(names.end(), read.begin(), read.end());
  std::error_code ignored;  // what can't be looked at fails elsewhere, with the reason
  const auto place = [&](const std::string& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(options.text(name), ignored),
                                             ignored);
  };
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (std::size_t j = i + 1; j < names.size(); ++j) {
      if (!options.has(names[i]) || !options.has(names[j]) || place(names[i]) != place(names[j])) {
        continue;
      }
      throw UsageError(names[i] + " and " + names[j] +
                       " name the same file: " + options.text(names[i]));
    }
  }
}

std::string describe(const std::vector<OptionSpec>& specs) {
  const auto usage = [](const OptionSpec& spec) {
    return "  " + spec.name + (spec.value.empty() ? "" : " " + spec.value);
  };
  std::size_t width = 0;
  for (const OptionSpec& spec : specs) width = std::max(width, usage(spec).size());
  std::string text;
  for (const OptionSpec& spec : specs) {
    std::string line = usage(spec);
    line.resize(width + 2, ' ');
    text += line + spec.help + "\n";
  }
  return text;
}

}  // namespace convladder
