#include "common/command/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace convladder {

Options::Options(const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  bool wants_help = false;
  app.add_flag("--help", wants_help, "this text");
  std::size_t width = 0;
  for (const OptionSpec& spec : specs) {
    width = std::max(width, spec.name.size() + spec.value.size() + 1);
    const int most = CLI::detail::expected_max_vector_size;
    if (spec.value.empty()) {
      app.add_flag(spec.name)->disable_flag_override();  // --relu=0 is an error
    } else {
      app.add_option(spec.name)->type_name(spec.value)->expected(1, most)->allow_extra_args(false);
    }
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool is_help = arguments[i] == "-h" || arguments[i] == "--help";
    const auto is_option = [&](const OptionSpec& spec) { return spec.name == arguments[i]; };
    const auto lacks = [&](const OptionSpec& spec) {
      return !spec.value.empty() && spec.name == arguments[i - 1];
    };
    if ((is_help || std::any_of(specs.begin(), specs.end(), is_option)) &&
        std::any_of(specs.begin(), specs.end(), lacks)) {
      throw UsageError(arguments[i - 1] + " needs a value");
    }
  }
  try {
    app.allow_extras();
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them so
    // Not a flag of its own: newer versions of CLI11 refuse -h beside --h, the height.
    std::replace(reversed.begin(), reversed.end(), std::string("-h"), std::string("--help"));
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    std::string said = error.what();
    const std::size_t lacks = said.find(": 1 required ");
    if (lacks != std::string::npos) said.replace(lacks, std::string::npos, " needs a value");
    throw UsageError(said + " (--help lists the options)");
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    throw UsageError(fmt::format("{} was not expected (--help lists the options)", extras[0]));
  }
  for (const OptionSpec& spec : specs) {
    if (app.count(spec.name) == 0) continue;
    const std::vector<std::string>& values = given_[spec.name] = app[spec.name]->results();
    if (spec.value.empty()) continue;
    if (values.size() > 1 && !spec.repeats) throw UsageError(spec.name + " is given twice");
    if (values.back().empty()) {
      throw UsageError(fmt::format("{0} needs a value: {0} {1}", spec.name, spec.value));
    }
  }
  if (!wants_help) return;
  given_["--help"] = {""};
  for (const OptionSpec& spec : specs) {
    help_ += fmt::format("  {:{}}  {}\n", spec.name + " " + spec.value, width, spec.help);
  }
  help_ += fmt::format("  {:{}}  this text\n", "--help", width);
}

std::vector<std::string> Options::all(const std::string& name) const {
  return has(name) ? given_.at(name) : std::vector<std::string>();
}

std::string Options::text(const std::string& name, const std::string& fallback) const {
  return has(name) ? given_.at(name).back() : fallback;
}

int64_t Options::integer(const std::string& name, int64_t fallback, int64_t least,
                         int64_t most) const {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  int64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error == std::errc::invalid_argument || end != value.data() + value.size()) {
    throw UsageError(name + " = '" + value + "': must be a whole number");
  }
  if (error != std::errc()) throw UsageError(name + " = " + value + ": does not fit 64 bits");
  if (result < least || result > most) {
    throw UsageError(fmt::format("{} = {}: must be at {} {}", name, value,
                                 result < least ? "least" : "most", result < least ? least : most));
  }
  return result;
}

double Options::number(const std::string& name, double fallback, double least) const {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  char* end = nullptr;
  const double result = std::strtod(value.c_str(), &end);
  if (*end != '\0' || !std::isfinite(result) || result < least) {
    throw UsageError(fmt::format("{} = '{}': must be a number, at least {:g}", name, value, least));
  }
  return result;
}

}  // namespace convladder
