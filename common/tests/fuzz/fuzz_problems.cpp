// The reader of problem lists (CSV), and what is done with every problem that it gives.
#include "common/check/problems.h"
#include "common/tests/fuzz/fuzzing.h"

using namespace convladder;

namespace {

constexpr double MAX_MACS = 1e6;

void use(const Problem& problem) {
  const double macs = multiply_adds(problem.arguments);
  const ConvArguments reduced = reduce(problem.arguments, MAX_MACS);
  require(multiply_adds(reduced) <= macs, "reduce() does not add work");
  if (macs > 0) make_conv_shape(reduced);  // throws where reduce() made a problem illegal
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  read_or_complain(file.path(), [&] {
    const std::vector<Problem> problems = read_problems(file.path());
    require(!problems.empty(), "there is a problem");
    for (const Problem& problem : problems) {
      require(!problem.name.empty(), "a problem has a name");
      use(problem);
    }
    require(find_problem(problems, problems.back().name).name == problems.back().name,
            "a problem is found by its name");
  });
  return 0;
}
