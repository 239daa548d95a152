// Which stages and which problems a command line asks for.
#pragma once

#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/core/stage.h"
#include "common/harness/options.h"

namespace convladder {

// --stage, --relu, --seed, --json, --max-gmac: what every measuring command takes.
std::vector<OptionSpec> stage_options();
// --shape and the single extents.
std::vector<OptionSpec> problem_options();

// The stages named by --stage, in the ladder's order, else all. Throws UsageError for a name that
// is not there.
std::vector<Stage> selected_stages(const Options& options);

// True when the command line names a problem or an extent of one.
bool names_problem(const Options& options);

// The problem named by --shape (from common/problems.csv unless --shapes gives another file), with
// the single extents replacing its own; without --shape they describe a problem of their own, the
// rest being the defaults of ConvArguments. Throws UsageError for an unknown name.
Problem named_problem(const Options& options);

// The file behind --shapes, else the repository's own common/problems.csv.
std::string problems_file(const Options& options);

// Cuts `problem` down to --max-gmac (on a GPU only where that is given) and returns a note that says
// so; empty where nothing was cut.
std::string fit_to_backend(Problem& problem, const Options& options);

// Where the records go: --json, else build/report/`name`, or nowhere ("") where `name` is null.
// Throws std::runtime_error where that can't be written: to be called before measuring.
std::string json_path(const Options& options, const char* name = nullptr);

// The path as seen from here, if it lies below the current folder.
std::string shortened(const std::string& path);

// A path inside the repository, wherever the program is called from.
std::string repository_path(const std::string& relative);

}  // namespace convladder
