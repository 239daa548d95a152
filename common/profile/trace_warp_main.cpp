// What one warp of a stage asks of memory, instruction by instruction, with the addresses of its 32
// lanes: `trace_warp --stage 01_naive --shape alexnet_conv1 --json FILE`. Counting simulator only.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "common/check/test_data.h"
#include "common/core/launch.h"
#include "common/harness/device_buffer.h"
#include "common/harness/options.h"
#include "common/harness/selection.h"
#include "common/io/json.h"
#include "common/profile/tile_reads.h"
#include "common/simulator/counting/warp_trace.h"

namespace convladder {
namespace {

using simulator::Operation;
using simulator::Space;
using simulator::TracedAccess;
using simulator::WarpAccess;

constexpr int LANES = 32;

constexpr const char* HELP =
    "usage: trace_warp --stage NAME [OPTION...]\n"
    "       trace_warp --tile-reads [OPTION...]\n"
    "\n"
    "Lists the memory instructions of one warp: source line, sectors or wavefronts, and with "
    "--json\n"
    "the offset of every lane, in bytes from the begin of its tensor or shared variable.\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = {
      {"--stage", "NAME", "the stage to run"},
      {"--tile-reads", "", "instead of a stage: three ways to read a tile of shared memory"},
      {"--block", "B", "number of the block, counted along x first (default 0)"},
      {"--warp", "W", "number of the warp in the block (default 0)"},
      {"--json", "FILE", "write every lane's offset there"}};
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  specs.push_back({"--help", "", "this text"});
  return specs;
}

// What lies where in global memory.
struct Tensor {
  const char* name;
  const DeviceBuffer& buffer;
};

// An access in the reader's terms.
struct Line {
  TracedAccess traced;
  std::string memory;  // the tensor or the shared variable
  uint64_t base = 0;   // of the tensor: what offsets count from
};

Line locate(const TracedAccess& traced, const std::vector<Tensor>& tensors) {
  Line line{traced, traced.variable};
  if (traced.access.space == Space::kShared) return line;
  line.memory = "memory";  // a __device__ variable's, unless one of the tensors holds it
  const uint64_t address = traced.access.address[__builtin_ctz(traced.access.lanes)];
  for (const auto& [name, buffer] : tensors) {
    const auto begin = reinterpret_cast<uint64_t>(buffer.data());
    if (address - begin >= buffer.count() * sizeof(float)) continue;
    line.memory = name;
    line.base = begin;
  }
  return line;
}

std::vector<Line> trace_stage(const Stage& stage, const ConvShape& shape, bool bias) {
  const TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const std::size_t bytes = workspace_bytes(stage, shape);
  DeviceBuffer input(shape.input_count()), filters(shape.filter_count()), biases(shape.K);
  const DeviceBuffer output(shape.output_count()), workspace((bytes + 3) / 4);
  input.upload(data.input.data());
  filters.upload(data.filters.data());
  biases.upload(data.bias.data());

  Convolution conv;
  conv.shape = shape;
  conv.input = input.data(), conv.input_count = input.count();
  conv.filters = filters.data(), conv.filter_count = filters.count();
  conv.output = output.data(), conv.output_count = output.count();
  if (bias) conv.bias = biases.data(), conv.bias_count = biases.count();
  conv.workspace = bytes > 0 ? workspace.data() : nullptr;
  conv.workspace_bytes = bytes;
  run(stage, conv, nullptr);

  std::vector<Line> lines;
  for (const TracedAccess& traced : simulator::take_trace()) {
    lines.push_back(locate(traced, {{"input", input},
                                    {"filters", filters},
                                    {"bias", biases},
                                    {"output", output},
                                    {"workspace", workspace}}));
  }
  return lines;
}

std::vector<Line> trace_tile_reads() {
  launch_tile_reads();
  std::vector<Line> lines;
  for (const TracedAccess& traced : simulator::take_trace()) lines.push_back(locate(traced, {}));
  return lines;
}

const char* name_of(Operation operation) {
  return operation == Operation::kLoad ? "load" : operation == Operation::kStore ? "store" : "copy";
}

Json to_json(const Line& line) {
  const WarpAccess& access = line.traced.access;
  std::vector<Json> offsets;
  for (int lane = 0; lane < LANES; ++lane) {
    const bool takes_part = access.lanes >> lane & 1;
    offsets.push_back(takes_part ? Json(static_cast<int64_t>(access.address[lane] - line.base))
                                 : Json(std::nan("")));  // null
  }
  std::vector<std::pair<std::string, Json>> members = {
      {"kernel", line.traced.kernel},
      {"line", line.traced.line},
      {"space", access.space == Space::kShared ? "shared" : "global"},
      {"operation", name_of(access.operation)},
      {"bytes", static_cast<int>(access.bytes)},
      {"memory", line.memory},
      {"offsets", Json::array(offsets)}};
  if (access.space == Space::kShared) {
    const auto wavefronts = count_wavefronts(access);
    members.push_back({"wavefronts", wavefronts.total});
    members.push_back({"conflicts", wavefronts.conflicts});
  } else {
    members.push_back({"sectors", count_sectors(access)});
  }
  return Json::object(members);
}

std::string describe(const Line& line) {
  const WarpAccess& access = line.traced.access;
  const bool shared = access.space == Space::kShared;
  const int cost = shared ? count_wavefronts(access).total : count_sectors(access);
  return line.traced.kernel + " at " + line.traced.line + ": " + name_of(access.operation) +
         " of " + std::to_string(access.bytes) + " bytes, " + (shared ? "shared " : "global ") +
         line.memory + ", " + std::to_string(__builtin_popcount(access.lanes)) + " lanes, " +
         std::to_string(cost) + (shared ? " wavefront" : " sector") + (cost == 1 ? "" : "s");
}

// What is the same in all but its addresses is one line, with the number of times it came.
void print(const std::vector<Line>& lines) {
  std::vector<std::pair<std::string, int>> kinds;  // in the order of their first time
  for (const Line& line : lines) {
    const std::string text = describe(line);
    const auto same = [&](const auto& kind) { return kind.first == text; };
    const auto found = std::find_if(kinds.begin(), kinds.end(), same);
    if (found == kinds.end()) {
      kinds.push_back({text, 1});
    } else {
      ++found->second;
    }
  }
  for (const auto& [text, count] : kinds) std::printf("%5d x %s\n", count, text.c_str());
}

int trace(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, describe(option_specs()).c_str());
    return 0;
  }
  if (options.has("--stage") == options.has("--tile-reads")) {
    throw UsageError("give either --stage or --tile-reads");
  }
  simulator::trace_warp(options.integer("--block", 0, 0),
                        static_cast<unsigned>(options.integer("--warp", 0, 0, 31)));
  std::vector<Line> lines;
  if (options.has("--tile-reads")) {
    lines = trace_tile_reads();
  } else {
    Problem problem = named_problem(options);
    if (!options.has("--n")) problem.arguments.n = 1;  // shows nearly all, and takes seconds
    lines = trace_stage(find_stage(options.text("--stage")), make_conv_shape(problem.arguments),
                        problem.bias);
  }
  if (lines.empty()) throw UsageError("no such block and warp in any launch");
  if (!options.has("--json")) {
    print(lines);
    return 0;
  }
  std::vector<Json> records;
  for (const Line& line : lines) records.push_back(to_json(line));
  write_json(options.text("--json"), Json::array(records));
  return 0;
}

int fail(const char* reason, int status) {
  std::fprintf(stderr, "trace_warp: error: %s\n", reason);
  return status;
}

}  // namespace
}  // namespace convladder

int main(int argc, char** argv) {
  try {
    return convladder::trace({argv + 1, argv + argc});
  } catch (const convladder::UsageError& error) {
    return convladder::fail(error.what(), 2);
  } catch (const std::exception& error) {
    return convladder::fail(error.what(), 1);
  }
}
