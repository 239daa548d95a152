// Which stages and which problems a command line asks for.
#pragma once

#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/command/options.h"
#include "common/core/stage.h"

namespace convladder {

// --stage, --precision, --relu, --seed, --json, --max-gmac: what every measuring command takes.
std::vector<OptionSpec> stage_options();
OptionSpec precision_option();
// --shape and the single extents.
std::vector<OptionSpec> problem_options();

// The stages named by --stage (./ladder knows the beginnings of names), in the ladder's order, else all; with
// --precision fp32 or tf32 those of them that are of it. Throws std::invalid_argument for a name that is
// not there, and where nothing is left.
std::vector<Stage> selected_stages(const Options& options);

// The selected stages that can do what is asked: ReLU, where --relu is given.
std::vector<Stage> capable_stages(const Options& options);

// True when the command line names a problem or an extent of one.
bool names_problem(const Options& options);

// The problems named by --shape (from common/problems.csv unless --shapes gives another file), with
// the single extents replacing their own; without --shape one, where they replace those of `base`.
// Throws InvalidArgument for an unknown name.
std::vector<Problem> named_problems(const Options& options, const ConvArguments& base = {});

uint64_t seed_of(const Options& options);

// The file behind --shapes, else the repository's own common/problems.csv.
std::string problems_file(const Options& options);

// Of that file.
Problem problem_called(const Options& options, const std::string& name);

// Billions of multiply-adds that the simulator takes on unless --max-gmac says otherwise: of a problem
// on its own, and of each in a list, which is to be checked in a minute for every stage.
constexpr double ALONE_MAX_GMAC = 2, LISTED_MAX_GMAC = 0.03;

// --max-gmac; where it is not given, `fallback` on the simulator, and no limit on a GPU.
double max_gmac(const Options& options, double fallback = ALONE_MAX_GMAC);

// Cuts `problem` down to that, and returns a note that says so; empty where nothing was cut.
std::string cut_down(Problem& problem, double max_gmac);

// The file that gets the records: --json, else build/report/`name`; none ("") where `name` is null.
// Throws std::runtime_error where that can't be written: to be called before measuring.
std::string json_path(const Options& options, const char* name = nullptr);

// The path as seen from here, if it lies below the current folder.
std::string shortened(const std::string& path);

// A path inside the repository, wherever the program is called from; of a program that pip has installed,
// beside it, where pyproject.toml has files put.
std::string repository_path(const std::string& relative);

// Where a run leaves its pictures and records: build/report, or a folder here without a repository.
std::string report_folder();

}  // namespace convladder
