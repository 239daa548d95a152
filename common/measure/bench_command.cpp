// `bench`: the stages timed on a GPU, with a cold and a warm L2.
//
// By CUDA events and a plain loop. Google Benchmark repeats one benchmark after the other, or in
// an order drawn over all of them, so that the tensors of all problems had to stay in memory; here
// the stages take turns on one problem, and a cold and a warm run come in pairs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "common/check/files.h"
#include "common/check/progress.h"
#include "common/check/record.h"
#include "common/command/selection.h"
#include "common/measure/bench.h"
#include "common/measure/bench_problem.h"

namespace convladder {
namespace {

// Increase whenever a reader of the JSON would go wrong with what is written now.
constexpr int JSON_VERSION = 1;

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
./ladder bench shows them as tables.
Without --shape: every problem of --shapes, by default five well-known layers. Status 1 if
anything failed or was impossible, if a problem named on the command line was rejected, or if
nothing passed at all.

)";

std::vector<OptionSpec> option_specs() {
  return {
      {"--shape", "NAME", "a problem of common/problems.csv or --shapes; may be repeated", true},
      {"--shapes", "FILE.csv", "problems, one per row"},
      {"--stage", "NAME", "only this stage; may be repeated (default: all)", true},
      precision_option(),
      {"--batch", "N", "images, instead of the problem's own number"},
      {"--bias", "0|1", "without or with bias, whatever the problem says"},
      {"--competitors", "LIST", "all (default), none, cudnn, pytorch or cudnn,pytorch"},
      {"--machine", "FILE", "write the GPU's rates there, and time nothing else"},
      {"--repeats", "N", "rounds that count (default 15)"},
      {"--wrong-too", "", "time what is wrong as well; its record says fail"},
      {"--seed", "S", "of the random data (default 1)"},
      {"--json", "FILE", "write the records there (default build/report/bench.json)"}};
}

std::vector<Problem> selected_problems(const Options& options) {
  std::vector<std::string> names = options.all("--shape");
  if (names.empty() && options.has("--shapes")) return read_problems(problems_file(options));
  if (names.empty()) names.assign(std::begin(HEADLINE_PROBLEMS), std::end(HEADLINE_PROBLEMS));
  std::vector<Problem> selected;
  try {
    for (const std::string& name : names) selected.push_back(problem_called(options, name));
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

// What --competitors names.
std::vector<std::string> wanted_competitors(const Options& options) {
  const std::string list = options.text("--competitors", "all");
  if (list == "none") return {};
  if (list == "all" || list == "cudnn" || list == "pytorch") return {list};
  if (list == "cudnn,pytorch") return {"cudnn", "pytorch"};
  throw UsageError("--competitors = '" + list +
                   "': must be all, none, cudnn, pytorch or cudnn,pytorch");
}

// Looks for those named, which must be there; of all, for those that are.
void find_competitors(const std::vector<std::string>& wanted, BenchSettings& settings,
                      std::optional<PyTorch>& pytorch, Machine& machine) {
  const bool all = wanted == std::vector<std::string>{"all"};
  for (const std::string& name : all ? std::vector<std::string>{"cudnn", "pytorch"} : wanted) {
    try {
      if (name == "pytorch") {
        const char* others = std::getenv("PYTHONPATH");
        const std::string folders = repository_path("") + (others ? ":" + std::string(others) : "");
        setenv("PYTHONPATH", folders.c_str(), 1);
        pytorch.emplace("exec '" CONVLADDER_PYTHON "' -B -m common.measure.time_pytorch");
        settings.pytorch = &*pytorch;
        machine.libraries[name] = pytorch->greeting()["version"];
        continue;
      }
      settings.cudnn = cudnn_version();
      if (settings.cudnn.empty()) {
        throw std::runtime_error("not found when this program was built");
      }
      machine.libraries[name] = settings.cudnn;
    } catch (const std::runtime_error& error) {
      if (!all) throw std::runtime_error("--competitors " + name + ": " + error.what());
      fmt::print("without {}: {}\n", name, error.what());
    }
  }
}

void print_machine(const Machine& m) {
  fmt::print("{}, {} multiprocessors, L2 {:.0f} MiB; {}CUDA runtime {}\n", m.name,
             m.multiprocessors, m.l2_bytes / (1 << 20),
             m.driver.empty() ? "" : "driver " + m.driver + ", ", m.cuda_runtime);
  fmt::print("FP32 ceiling: {:.1f} TFLOP/s by a loop of FMAs ({:.1f} at {:.0f} MHz)\n",
             m.fma_flops * 1e-12, m.peak_flops * 1e-12, m.clock_hz * 1e-6);
  if (m.tf32_flops > 0) {
    fmt::print("TF32: {:.0f} TFLOP/s by a loop of products of the tensor cores\n",
               m.tf32_flops * 1e-12);
  }
  if (m.wgmma_flops > 0) {
    fmt::print("TF32: {:.0f} TFLOP/s by a loop of wgmma\n", m.wgmma_flops * 1e-12);
  }
  fmt::print(
      "DRAM copy: {:.2f} TB/s; reads: DRAM {:.2f}, L2 {:.2f}, L1 {:.2f}, shared memory {:.2f} "
      "TB/s\n",
      m.copy_bytes * 1e-12, m.read.dram * 1e-12, m.read.l2 * 1e-12, m.read.l1 * 1e-12,
      m.read.shared * 1e-12);
  fmt::print("a launch: at least {:.2f} us\n\n", m.launch_seconds * 1e6);
}

// The description of the GPU by which `profile` says what a stage takes at the least. No kernel
// reaches more: where a rate is known by the architecture and the clock, it is that.
void write_rates(const std::string& path, const Machine& m) {
  const double cycles = m.multiprocessors * m.clock_hz;
  constexpr double WAVEFRONT_BYTES = 128;
  const auto share = [](const char* what, double measured, double most) {
    return fmt::format("{}; measured: {:.3f} of it", what, measured / most);
  };
  Json rates = Json::array();
  const auto add = [&](const char* rate, double value, const std::string& source) {
    if (value == 0) return;  // not measured
    rates.push_back({{"name", rate}, {"value", value}, {"source", source}});
  };
  add("multiprocessors", m.multiprocessors, "the CUDA runtime");
  add("clock_mhz", m.clock_hz * 1e-6, "the CUDA runtime: the highest");
  add("fmas_per_cycle", m.peak_flops / 2 / cycles,
      share("CUDA C++ Programming Guide, by compute capability", m.fma_flops, m.peak_flops));
  add("wavefronts_per_cycle", 1,
      share("32 banks of 4 bytes; reads of shared memory", m.read.shared,
            cycles * WAVEFRONT_BYTES));
  add("dram_tb_per_s", std::max(m.copy_bytes, m.read.dram) * 1e-12,
      "bench: the faster of a copy and of reading alone, medians");
  add("l2_bytes", m.l2_bytes, "the CUDA runtime");
  add("fma_tflops", m.fma_flops * 1e-12, "bench: a loop of FMAs, the median");
  add("launch_us", m.launch_seconds * 1e6, "bench: a row of empty kernels, the least");
  add("tf32_tflops", m.tf32_flops * 1e-12, "bench: a loop of mma_tf32(), the median");
  add("wgmma_tflops", m.wgmma_flops * 1e-12, "bench: a loop of wgmma in TF32, the median");
  write_json(path,
             {{"format", "convladder machine"}, {"version", 1}, {"gpu", m.name}, {"rates", rates}});
  fmt::print("wrote {}\n", shortened(path));
}

// What a problem has come to, in a line: the tables are common/show/time_tables.py's.
void print(const Json& result) {
  int passed = 0, all = 0;
  for (const char* list : {"records", "competitors"}) {
    for (const Json& record : result[list]) ++all, passed += record["status"] == "pass";
  }
  const std::string error = result["error"];
  fmt::print("{}: {} of {} timed{}\n", std::string(result["problem"]), passed, all,
             error.empty() ? "" : "; not measured: " + error);
  flush_output();
}

// Each problem is written to the file `path` with those before it, as soon as it is measured: what
// ends a run of an hour doesn't take the hour.
Json measure(const std::vector<Problem>& problems, BenchSettings& settings, const Machine& machine,
             const std::string& path) {
  Progress progress(static_cast<int64_t>(problems.size()));
  Json results = Json::array();
  for (const Problem& problem : problems) {
    settings.show = [&](const std::string& what) {
      progress.show(static_cast<int64_t>(results.size()) + 1, problem.name + ": " + what);
    };
    results.push_back(bench_problem(problem, settings, machine));
    progress.clear();
    print(results.back());
    write_json(path, {{"format", "convladder bench"},
                      {"version", JSON_VERSION},
                      {"machine", to_json(machine)},
                      {"problems", results}});
  }
  return results;
}

// 0 when something passed and all that was asked for did. Rows of a file (`listed`) may rightly
// describe a problem that is rejected; for a stage that rejects a legal one there's no excuse.
int exit_status(const Json& results, bool listed) {
  bool any = false, all = true;
  for (const Json& result : results) {
    // The output says enough of a file's rows.
    if (!listed && result["error"] != "") {
      throw std::runtime_error(std::string(result["problem"]) + ": " +
                               std::string(result["error"]));
    }
    for (const Json& record : result["records"]) {
      const bool passed = record["status"] == "pass";
      const bool unfit = std::string(record["message"]).rfind(NOT_FOR_SHAPE, 0) == 0;
      any |= passed;
      all &= passed || unfit || (listed && !result.contains("shape"));
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
  BenchSettings settings;
  settings.stages = selected_stages(options);
  settings.repeats = static_cast<int>(options.integer("--repeats", 15, 1, 100000));
  settings.wrong_too = options.has("--wrong-too");
  settings.seed = static_cast<uint64_t>(options.integer("--seed", 1, 0));
  const std::vector<std::string> competitors = wanted_competitors(options);
  const std::string rates = options.text("--machine");
  if (!rates.empty()) require_writable(rates);
  const std::string records = rates.empty() ? json_path(options, "bench.json") : "";
  Machine machine = measure_machine();
  print_machine(machine);
  if (!rates.empty()) return write_rates(rates, machine), 0;
  std::optional<PyTorch> pytorch;
  find_competitors(competitors, settings, pytorch, machine);
  const bool listed = options.has("--shapes") && !options.has("--shape");
  return exit_status(measure(problems, settings, machine, records), listed);
}

}  // namespace convladder
