// What `bench` writes of what it has measured; common/show/bench.py has the tables.
#pragma once

#include <string>
#include <vector>

#include "common/check/files.h"
#include "common/measure/bench.h"

namespace convladder {

// A stage beside a competitor, over the problems on which both have passed.
struct Standing {
  std::string stage, competitor;  // the competitor's label(), which names its precision
  int problems = 0;
  int won = 0;            // of these: where the stage's cold median is the shorter one
  double geometric_mean;  // of how many times as fast the stage is; NaN without problems
};

// Every stage beside every competitor, both in the order in which the results first name them.
std::vector<Standing> standings(const std::vector<BenchResult>& results);

// {"format": "convladder bench", "version": 1, "machine": {...}, "problems": [{..., "records":
// [...], "competitors": [...]}], "standings": [{"stage": ..., "competitor": ..., ...}]}.
Json bench_json(const Machine& machine, const std::vector<BenchResult>& results);

}  // namespace convladder
