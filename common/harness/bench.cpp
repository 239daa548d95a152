#include "common/harness/bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/harness/table.h"

namespace convladder {
namespace {

// Increase whenever a reader of the JSON would go wrong with what is written now.
constexpr int JSON_VERSION = 1;

double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

// Along one axis of the image: pairs (output, filter element) that meet an element of it rather
// than padding, and the elements met at least once.
struct Overlap {
  double pairs = 0, elements = 0;
};

Overlap overlap(int extent, int outputs, int filter, int stride, int pad, int dilation) {
  Overlap result;
  std::vector<bool> met(static_cast<std::size_t>(extent));
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t tap = 0; tap < filter; ++tap) {
      const int64_t i = output * stride - pad + tap * dilation;
      if (i < 0 || i >= extent) continue;
      ++result.pairs;
      met[static_cast<std::size_t>(i)] = true;
    }
  }
  result.elements = static_cast<double>(std::count(met.begin(), met.end(), true));
  return result;
}

double tflops(const Work& work, const Statistics& times) {
  return work.flops / (times.median * 1e9);
}

double ceiling_fraction(const Work& work, const Statistics& times, const Machine& machine) {
  return work.flops / (times.median * 1e-3) / machine.fma_flops;
}

double copy_fraction(const Work& work, const Statistics& times, const Machine& machine) {
  return work.bytes / (times.median * 1e-3) / machine.copy_bytes;
}

std::string percent(double fraction) { return fixed(100 * fraction, 1); }

// What the stages are compared with: both compute in FP32, in the layout that stages use.
std::vector<const CompetitorRecord*> peers(const BenchResult& result) {
  std::vector<const CompetitorRecord*> timed;
  for (const CompetitorRecord& competitor : result.competitors) {
    const CompetitorInfo& info = competitor.info;
    const bool alike = info.precision == Precision::kFp32 && info.layout == "nchw";
    if (alike && competitor.bench.cold) timed.push_back(&competitor);
  }
  return timed;
}

// The cells of a stage and a competitor alike. TF32 has another ceiling than the one measured.
std::vector<std::string> table_row(const BenchRecord& bench, const Work& work,
                                   const Machine& machine, Precision precision) {
  std::vector<std::string> row = {bench.record.stage};
  if (!bench.cold || !bench.warm) {
    row.resize(7, "-");
    return row;
  }
  const Statistics &cold = *bench.cold, &warm = *bench.warm;
  row.push_back(significant(cold.median, 4));
  row.push_back(significant(cold.lower_quartile, 4) + " - " + significant(cold.upper_quartile, 4));
  row.push_back(significant(warm.median, 4));
  row.push_back(fixed(tflops(work, cold), 2));
  row.push_back(precision == Precision::kFp32 ? percent(ceiling_fraction(work, cold, machine))
                                              : "-");
  row.push_back(percent(copy_fraction(work, cold, machine)));
  return row;
}

// A line if any of its times may contain the host's.
std::string host_late_remark(const BenchRecord& bench) {
  if (bench.host_late == 0 || !bench.cold) return "";
  return bench.record.stage + ": in " + std::to_string(bench.host_late) + " of " +
         std::to_string(bench.cold->count) +
         " runs the GPU may have waited for the host; that time is in these\n";
}

Json to_json(const std::optional<Statistics>& times) {
  if (!times) return std::nan("");
  return Json::object({{"median", times->median},
                       {"lower_quartile", times->lower_quartile},
                       {"upper_quartile", times->upper_quartile},
                       {"min", times->least},
                       {"max", times->most},
                       {"count", times->count}});
}

Json to_json(const Machine& machine) {
  std::vector<std::pair<std::string, Json>> members = {
      {"gpu", machine.name},
      {"compute_capability", machine.compute_capability},
      {"cuda_runtime", machine.cuda_runtime},
      {"driver", machine.driver},
      {"multiprocessors", machine.multiprocessors},
      {"l2_bytes", machine.l2_bytes},
      {"max_sm_clock_mhz", machine.clock_hz * 1e-6},
      {"peak_tflops", machine.peak_flops * 1e-12},
      {"fma_tflops", machine.fma_flops * 1e-12},
      {"copy_tb_per_s", machine.copy_bytes * 1e-12},
      {"dram_read_tb_per_s", machine.read_rates.dram * 1e-12},
      {"l2_read_tb_per_s", machine.read_rates.l2 * 1e-12},
      {"l1_read_tb_per_s", machine.read_rates.l1 * 1e-12},
      {"shared_read_tb_per_s", machine.read_rates.shared * 1e-12}};
  members.insert(members.end(), machine.libraries.begin(), machine.libraries.end());
  return Json::object(members);
}

Json to_json(const CompetitorRecord& competitor, const std::optional<Work>& work,
             const Machine& machine) {
  const CompetitorInfo& info = competitor.info;
  const BenchRecord& bench = competitor.bench;
  const bool timed = work && bench.cold, fp32 = info.precision == Precision::kFp32;
  return Json::object(
      {{"competitor", info.competitor},
       {"precision", to_string(info.precision)},
       {"layout", info.layout},
       {"library", info.library},
       {"algorithm", competitor.algorithm},
       {"status", bench.record.status},
       {"max_error_ratio", bench.record.max_error_ratio},
       {"message", bench.record.message},
       {"cold_ms", to_json(bench.cold)},
       {"warm_ms", to_json(bench.warm)},
       {"host_late", bench.host_late},
       {"tflops", timed ? tflops(*work, *bench.cold) : std::nan("")},
       {"fraction_of_ceiling",
        timed && fp32 ? ceiling_fraction(*work, *bench.cold, machine) : std::nan("")}});
}

Json to_json(const BenchRecord& bench, const std::optional<Work>& work, const Machine& machine) {
  auto members = json_members(bench.record);
  members.push_back({"impossible", bench.record.status == "impossible"});
  members.push_back({"cold_ms", to_json(bench.cold)});
  members.push_back({"warm_ms", to_json(bench.warm)});
  members.push_back({"host_late", bench.host_late});
  const bool timed = work && bench.cold;
  const auto rate = [&](double value) { return Json(timed ? value : std::nan("")); };
  const Statistics cold = bench.cold.value_or(Statistics());
  const Work done = work.value_or(Work());
  members.push_back({"tflops", rate(tflops(done, cold))});
  members.push_back({"fraction_of_ceiling", rate(ceiling_fraction(done, cold, machine))});
  members.push_back({"fraction_of_copy_rate", rate(copy_fraction(done, cold, machine))});
  return Json::object(members);
}

Json to_json(const BenchResult& result, const Machine& machine) {
  std::vector<std::pair<std::string, Json>> members = {{"problem", result.problem},
                                                       {"bias", result.bias}};
  std::optional<Work> work;
  if (result.shape) {
    work = work_of(*result.shape, result.bias);
    members.push_back({"shape", to_string(*result.shape)});
    members.push_back({"flop", work->flops});
    members.push_back({"needed_flop", work->needed_flops});
    members.push_back({"least_bytes", work->bytes});
    members.push_back({"cold_floor_ms", floor_ms(*work, machine, Cache::kCold)});
    members.push_back({"warm_floor_ms", floor_ms(*work, machine, Cache::kWarm)});
  }
  members.push_back({"error", result.error});
  members.push_back({"gpu_before", to_json(result.before)});
  members.push_back({"gpu_after", to_json(result.after)});
  std::vector<Json> records;
  for (const BenchRecord& bench : result.records) records.push_back(to_json(bench, work, machine));
  members.push_back({"records", Json::array(records)});
  std::vector<Json> competitors;
  for (const CompetitorRecord& competitor : result.competitors) {
    competitors.push_back(to_json(competitor, work, machine));
  }
  members.push_back({"competitors", Json::array(competitors)});
  return Json::object(members);
}

}  // namespace

Statistics summarise(std::vector<double> samples) {
  if (samples.empty()) throw InvalidArgument("samples = 0: there is nothing to summarise");
  std::sort(samples.begin(), samples.end());
  return {static_cast<int>(samples.size()), samples.front(),         quantile(samples, 0.25),
          quantile(samples, 0.5),           quantile(samples, 0.75), samples.back()};
}

Work work_of(const ConvShape& shape, bool bias) {
  const ConvShape& s = shape;
  const Overlap h = overlap(s.H, s.P(), s.R, s.stride_h, s.pad_h, s.dil_h);
  const Overlap w = overlap(s.W, s.Q(), s.S, s.stride_w, s.pad_w, s.dil_w);
  const double planes = static_cast<double>(s.N) * s.C;
  Work work;
  work.flops = s.flops();
  work.needed_flops = 2 * planes * s.K * h.pairs * w.pairs;
  work.bytes =
      sizeof(float) * (planes * h.elements * w.elements +
                       static_cast<double>(s.filter_count() + s.output_count()) + (bias ? s.K : 0));
  return work;
}

double floor_ms(const Work& work, const Machine& machine, Cache cache) {
  // Cold, the L2 is full of what the flush wrote: each line that comes pushes one of those out to
  // memory, so that results left in the cache are no saving.
  const double cached = cache == Cache::kWarm ? machine.l2_bytes : 0;
  const double moved = std::max(0.0, work.bytes - cached);
  return 1e3 * std::max(work.needed_flops / machine.peak_flops, moved / machine.copy_bytes);
}

void set_times(BenchRecord& bench, const Samples& samples) {
  bench.cold = summarise(samples.cold);
  bench.warm = summarise(samples.warm);
  bench.host_late = samples.host_late;
}

void flag_impossible(BenchRecord& bench, const Work& work, const Machine& machine) {
  if (bench.record.status != "pass") return;
  const auto check = [&](const char* name, double time, Cache cache) {
    const double floor = floor_ms(work, machine, cache);
    if (time >= floor) return;  // which a NaN is not
    bench.record.status = "impossible";
    bench.record.message += (bench.record.message.empty() ? "" : "; ") + significant(time, 4) +
                            " ms " + name + " is below the floor of " + significant(floor, 4) +
                            " ms";
  };
  check("cold", bench.cold ? bench.cold->median : std::nan(""), Cache::kCold);
  check("warm", bench.warm ? bench.warm->median : std::nan(""), Cache::kWarm);
}

std::string bench_table(const BenchResult& result, const Machine& machine) {
  Table table;
  table.add_column("stage", Align::kLeft);
  for (const char* header :
       {"cold [ms]", "middle half", "warm [ms]", "TFLOP/s", "% of ceiling", "% of copy rate"}) {
    table.add_column(header, Align::kRight);
  }
  const std::vector<const CompetitorRecord*> fp32 = peers(result);
  for (const CompetitorRecord* peer : fp32) {
    table.add_column("x " + peer->bench.record.stage, Align::kRight);
  }
  table.add_column("check", Align::kLeft);
  const Work work = result.shape ? work_of(*result.shape, result.bias) : Work();
  std::string remarks;
  for (const BenchRecord& bench : result.records) {
    std::vector<std::string> row = table_row(bench, work, machine, Precision::kFp32);
    for (const CompetitorRecord* peer : fp32) {
      row.push_back(bench.cold ? fixed(peer->bench.cold->median / bench.cold->median, 2) : "-");
    }
    row.push_back(bench.record.status);
    table.add_row(row);
    remarks += host_late_remark(bench);
  }
  for (const CompetitorRecord& competitor : result.competitors) {
    const BenchRecord& bench = competitor.bench;
    std::vector<std::string> row = table_row(bench, work, machine, competitor.info.precision);
    row.resize(row.size() + fp32.size(), "-");
    row.push_back(bench.record.status);
    table.add_row(row);
    remarks += host_late_remark(bench);
  }
  return table.text() + remarks;
}

Json bench_json(const Machine& machine, const std::vector<BenchResult>& results) {
  std::vector<Json> problems;
  for (const BenchResult& result : results) problems.push_back(to_json(result, machine));
  return Json::object({{"format", "convladder bench"},
                       {"version", JSON_VERSION},
                       {"machine", to_json(machine)},
                       {"problems", Json::array(problems)}});
}

double trial_bytes(const std::vector<Stage>& stages, const ConvShape& shape, bool bias) {
  constexpr double ROUNDING = 2 << 20;  // cudaMalloc gives whole pages of 2 MiB
  constexpr int BUFFERS = 5;            // input, filters, bias, output, workspace
  const double tensors =
      sizeof(float) * static_cast<double>(shape.input_count() + shape.filter_count() +
                                          shape.output_count() + (bias ? shape.K : 0));
  double bytes = 0;
  for (const Stage& stage : stages) {
    bytes += tensors + static_cast<double>(workspace_bytes(stage, shape)) + BUFFERS * ROUNDING;
  }
  return bytes;
}

std::string memory_shortage(double needed, const std::string& what, double available, int batch) {
  return "out of device memory: " + fixed(needed, 0) + " bytes needed for " + what + ", " +
         fixed(available, 0) + " free; " +
         (batch > 0 ? "--batch " + std::to_string(batch) + " would fit" : "no batch would fit");
}

int largest_batch(ConvShape shape, double available,
                  const std::function<double(const ConvShape&)>& bytes) {
  int fits = 0, above = shape.N;  // the answer is in [fits, above]
  while (fits < above) {
    shape.N = above - (above - fits) / 2;
    if (bytes(shape) <= available) {
      fits = shape.N;
    } else {
      above = shape.N - 1;
    }
  }
  return fits;
}

}  // namespace convladder
