// What `bench` prints and writes of what it has measured.
#pragma once

#include <string>
#include <vector>

#include "common/io/json.h"
#include "common/measure/bench.h"

namespace convladder {

// One row per stage, one per competitor, and columns that compare the stages with the FP32 ones.
// Below, a line for each that the host was late for.
std::string bench_table(const BenchResult& result, const Machine& machine);

// A stage beside a competitor, over the problems on which both have passed.
struct Standing {
  std::string stage, competitor;  // the competitor's label(), which names its precision
  int problems = 0;
  int won = 0;            // of these: where the stage's cold median is the shorter one
  double geometric_mean;  // of how many times as fast the stage is; NaN without problems
};

// Every stage beside every competitor, both in the order in which the results first name them.
std::vector<Standing> standings(const std::vector<BenchResult>& results);

// One row per stage, one column per competitor: "0.79 (22 of 55)". Empty without competitors.
std::string standings_table(const std::vector<BenchResult>& results);

// {"format": "convladder bench", "version": 1, "machine": {...}, "problems": [{..., "records":
// [...], "competitors": [...]}], "standings": [{"stage": ..., "competitor": ..., ...}]}.
Json bench_json(const Machine& machine, const std::vector<BenchResult>& results);

}  // namespace convladder
