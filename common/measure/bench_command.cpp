// `bench`: the stages timed on a GPU, with a cold and a warm L2.
//
// By CUDA events and a plain loop. Google Benchmark repeats one benchmark after the other, or in
// an order drawn over all of them, so that the tensors of all problems had to stay in memory; here
// the stages take turns on one problem, and a cold and a warm run come in pairs.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include "common/check/files.h"
#include "common/check/progress.h"
#include "common/command/selection.h"
#include "common/measure/bench.h"
#include "common/measure/bench_problem.h"
#include "common/measure/bench_report.h"
#include "common/measure/competitor_pytorch.h"
#include "common/measure/interrupt.h"

namespace convladder {
namespace {

constexpr const char* HEADLINE_PROBLEMS[] = {"alexnet_conv1", "kernelbench_63",
                                             "resnet50_conv1_b64", "resnet50_3x3_64_b64",
                                             "vgg16_conv3_2_b32"};

constexpr const char* HELP = R"(usage: convladder bench [OPTION...]

Times the stages on a GPU, on random numbers in [-1, 1). In every round each stage has its
turn: once cold, after a buffer of twice the L2's size was written, and once more, warm. The
GPU writes that buffer again and again until both have been enqueued, so that neither time
contains the host's; where one may, a line says so. The result is checked before the first
run and after the last. Also measured: the ceiling (a loop of FMAs), the copy rate, and how
fast each level of memory is read. A median below the physical floor, the longer of FLOP /
peak and least bytes / copy rate, is reported as impossible.

cuDNN and PyTorch, where they are found, take their turns in the same rounds: in FP32, as the
stages, and in TF32 (10 bits of each factor), which is what both do by default. Bias included,
results checked. What becomes of them does not change the exit status.

Over several problems (common/layers.csv has some of most well-known networks), at the end:
the geometric mean by which each stage is faster than each competitor, and on how many it is.

The records are written after each problem: an interrupted run leaves those that are done.
Without --shape: every problem of --shapes, by default five well-known layers. Status 1 if
anything failed or was impossible, if a problem named on the command line was rejected, or if
nothing passed at all.

)";

std::vector<OptionSpec> option_specs() {
  return {
      {"--shape", "NAME", "a problem of common/problems.csv or --shapes; may be repeated", true},
      {"--shapes", "FILE.csv", "problems, one per row"},
      {"--stage", "NAME", "only this stage; may be repeated (default: all)"},
      precision_option(),
      {"--batch", "N", "images, instead of the problem's own number"},
      {"--bias", "0|1", "without or with bias, whatever the problem says"},
      {"--competitors", "LIST", "all (default), none, cudnn, pytorch or cudnn,pytorch"},
      {"--machine", "FILE", "write the GPU's rates there, and time nothing else"},
      {"--repeats", "N", "rounds that count (default 15)"},
      {"--seed", "S", "of the random data (default 1)"},
      {"--json", "FILE", "write the records there (default build/report/bench.json)"}};
}

std::vector<Problem> selected_problems(const Options& options) {
  std::vector<Problem> all = read_problems(problems_file(options));
  std::vector<std::string> names = options.all("--shape");
  if (names.empty() && options.has("--shapes")) return all;
  if (names.empty()) names.assign(std::begin(HEADLINE_PROBLEMS), std::end(HEADLINE_PROBLEMS));
  std::vector<Problem> selected;
  try {
    for (const std::string& name : names) selected.push_back(find_problem(all, name));
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
  return selected;
}

std::vector<Problem> wanted_problems(const Options& options) {
  std::vector<Problem> problems = selected_problems(options);
  for (Problem& problem : problems) {
    if (options.has("--bias")) problem.bias = options.integer("--bias", 1, 0, 1) == 1;
    if (!options.has("--batch")) continue;
    problem.arguments.n = options.integer("--batch", 1, 1);
    problem.name += " (changed)";
  }
  return problems;
}

BenchSettings settings(const Options& options) {
  return {selected_stages(options), static_cast<int>(options.integer("--repeats", 15, 1, 100000)),
          static_cast<uint64_t>(options.integer("--seed", 1, 0))};
}

// The names in --competitors; "all" stays as it is.
std::vector<std::string> wanted_competitors(const Options& options) {
  const std::string list = options.text("--competitors", "all");
  if (list == "none") return {};
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  for (const std::string& name : names) {
    const bool known = name == "cudnn" || name == "pytorch" || (name == "all" && names.size() == 1);
    if (!known)
      throw UsageError("--competitors = '" + list + "': must be all, none, cudnn, pytorch");
  }
  return names;
}

Competitors make_competitors(const std::string& name, const Machine& machine) {
  if (name == "pytorch") {
    return pytorch_competitors(
        {{CONVLADDER_PYTHON, repository_path("common/measure/time_pytorch.py")}, machine.l2_bytes});
  }
  Competitors competitors = cudnn_competitors();
  if (competitors.empty()) throw std::runtime_error("not found when this program was built");
  return competitors;
}

// Those named must be there; of all, those that are.
Competitors find_competitors(const std::vector<std::string>& wanted, Machine& machine) {
  const bool all = wanted == std::vector<std::string>{"all"};
  Competitors found;
  for (const std::string& name : all ? std::vector<std::string>{"cudnn", "pytorch"} : wanted) {
    try {
      const Competitors made = make_competitors(name, machine);
      machine.libraries[name] = made.front()->info().version;
      found.insert(found.end(), made.begin(), made.end());
    } catch (const std::runtime_error& error) {
      if (!all) throw std::runtime_error("--competitors " + name + ": " + error.what());
      std::printf("without %s: %s\n", name.c_str(), error.what());
    }
  }
  return found;
}

void print_machine(const Machine& m) {
  const std::string driver = m.driver.empty() ? "" : "driver " + m.driver + ", ";
  std::printf("%s, %d multiprocessors, L2 %.0f MiB; %sCUDA runtime %s\n", m.name.c_str(),
              m.multiprocessors, m.l2_bytes / (1 << 20), driver.c_str(), m.cuda_runtime.c_str());
  std::printf("FP32 ceiling: %.1f TFLOP/s by a loop of FMAs (%.1f at %.0f MHz)\n",
              m.fma_flops * 1e-12, m.peak_flops * 1e-12, m.clock_hz * 1e-6);
  if (m.tf32_flops > 0) {
    std::printf("TF32: %.0f TFLOP/s by a loop of products of the tensor cores\n",
                m.tf32_flops * 1e-12);
  }
  const MemoryRates& reads = m.read_rates;
  std::printf("DRAM copy: %.2f TB/s; reads: DRAM %.2f, L2 %.2f, L1 %.2f, shared memory %.2f TB/s\n",
              m.copy_bytes * 1e-12, reads.dram * 1e-12, reads.l2 * 1e-12, reads.l1 * 1e-12,
              reads.shared * 1e-12);
  std::printf("a launch: at least %.2f us\n\n", m.launch_seconds * 1e6);
}

// The description of the GPU by which `profile` says what a stage takes at the least. No kernel
// reaches more: where a rate is known by the architecture and the clock, it is that.
void write_rates(const std::string& path, const Machine& m) {
  const auto of_it = [](const char* what, double measured, double most) {
    return std::string(what) + "; measured: " + fmt::format("{:.3f}", measured / most) + " of it";
  };
  const double cycles = m.multiprocessors * m.clock_hz;
  constexpr double WAVEFRONT_BYTES = 128;
  std::vector<Json> rates;
  const auto add = [&](const char* rate, double value, const std::string& source) {
    if (value == 0) return;  // not measured
    rates.push_back(Json::object({{"name", rate}, {"value", value}, {"source", source}}));
  };
  add("multiprocessors", m.multiprocessors, "the CUDA runtime");
  add("clock_mhz", m.clock_hz * 1e-6, "the CUDA runtime: the highest");
  add("fmas_per_cycle", m.peak_flops / 2 / cycles,
      of_it("CUDA C++ Programming Guide, by compute capability", m.fma_flops, m.peak_flops));
  add("wavefronts_per_cycle", 1,
      of_it("32 banks of 4 bytes; reads of shared memory", m.read_rates.shared,
            cycles * WAVEFRONT_BYTES));
  add("dram_tb_per_s", std::max(m.copy_bytes, m.read_rates.dram) * 1e-12,
      "bench: the faster of a copy and of reading alone, medians");
  add("l2_bytes", m.l2_bytes, "the CUDA runtime");
  add("fma_tflops", m.fma_flops * 1e-12, "bench: a loop of FMAs, the median");
  add("launch_us", m.launch_seconds * 1e6, "bench: a row of empty kernels, the least");
  add("tf32_tflops", m.tf32_flops * 1e-12, "bench: a loop of mma_tf32(), the median");
  write_json(path, Json::object({{"format", "convladder machine"},
                                 {"version", 1},
                                 {"gpu", m.name},
                                 {"rates", Json(rates)}}));
  std::printf("wrote %s\n", shortened(path).c_str());
}

void print_heading(const BenchResult& result, const Machine& machine) {
  std::printf("%s", result.problem.c_str());
  if (result.shape) {
    const Work work = work_of(*result.shape, result.bias);
    std::printf(": %s%s; %.4g GFLOP, at least %.3g GB, in FP32 %.3g ms",
                to_string(*result.shape).c_str(), result.bias ? ", bias" : "", work.flops * 1e-9,
                work.bytes * 1e-9, floor_ms(work, machine, Cache::kCold));
  }
  std::printf("\n");
}

void print(const BenchRecord& bench) {
  const Record& record = bench.record;
  const std::string time = bench.cold ? fmt::format("{:.4g} ms", bench.cold->median) : "-";
  fmt::print("{:22}  {:>11}  {:10}  {}\n", record.stage, time, record.status, record.message);
}

void print(const BenchResult& result, const Machine& machine) {
  print_heading(result, machine);
  for (const BenchRecord& bench : result.records) print(bench);
  for (const CompetitorRecord& competitor : result.competitors) print(competitor.bench);
  if (!result.error.empty()) fmt::print("not measured: {}\n", result.error);
  if (result.before && result.after) {
    fmt::print("GPU before: {}; after: {}\n", to_string(*result.before), to_string(*result.after));
  }
  fmt::print("\n");
  flush_output();
}

// Each problem is written to the file `records` with those before it, as soon as it is measured: what
// ends a run of an hour doesn't take the hour.
std::vector<BenchResult> measure(const std::vector<Problem>& problems,
                                 const BenchSettings& settings, const Machine& machine,
                                 const std::string& records) {
  Progress progress(static_cast<int64_t>(problems.size()));
  std::vector<BenchResult> results;
  std::string name;
  ProblemBench bench(settings, machine, [&](const std::string& what) {
    throw_if_interrupted();
    progress.show(static_cast<int64_t>(results.size()) + 1, name + ": " + what);
  });
  for (const Problem& problem : problems) {
    name = problem.name;
    results.push_back(bench.run(problem));
    progress.clear();
    print(results.back(), machine);
    write_json(records, bench_json(machine, results));
  }
  return results;
}

// 0 when something passed and all that was asked for did. Rows of a file (`listed`) may rightly
// describe a problem that is rejected; for a stage that rejects a legal one there's no excuse.
int exit_status(const std::vector<BenchResult>& results, bool listed) {
  bool any = false, all = true;
  for (const BenchResult& result : results) {
    for (const BenchRecord& bench : result.records) {
      const bool passed = bench.record.status == "pass";
      any |= passed;
      all &= passed || (listed && !result.shape);
    }
  }
  return any && all ? 0 : 1;
}

}  // namespace

int bench_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, options.help().c_str());
    return 0;
  }
  const std::vector<Problem> problems = wanted_problems(options);
  BenchSettings wanted = settings(options);
  const std::vector<std::string> names = wanted_competitors(options);
  const std::string rates = options.text("--machine");
  if (!rates.empty()) require_writable(rates);
  const std::string records = rates.empty() ? json_path(options, "bench.json") : "";
  const InterruptScope interrupts;  // a child process may have to be ended
  Machine machine = measure_machine();
  print_machine(machine);
  if (!rates.empty()) return write_rates(rates, machine), 0;
  wanted.competitors = find_competitors(names, machine);
  const std::vector<BenchResult> results = measure(problems, wanted, machine, records);
  throw_if_interrupted();

  const bool listed = options.has("--shapes") && !options.has("--shape");
  for (const BenchResult& result : results) {  // of a file's rows the output says enough
    if (!listed && !result.error.empty()) {
      throw std::runtime_error(result.problem + ": " + result.error);
    }
  }
  return exit_status(results, listed);
}

}  // namespace convladder
