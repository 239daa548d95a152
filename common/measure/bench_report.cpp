#include "common/measure/bench_report.h"

#include <algorithm>
#include <cmath>

#include "common/io/table.h"

namespace convladder {
namespace {

// Increase whenever a reader of the JSON would go wrong with what is written now.
constexpr int JSON_VERSION = 1;

using Members = std::vector<std::pair<std::string, Json>>;

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

// The cells of a stage and a competitor alike. The ceiling is that of FP32.
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
  Members members = {{"gpu", machine.name},
                     {"compute_capability", machine.compute_capability},
                     {"cuda_runtime", machine.cuda_runtime},
                     {"driver", machine.driver},
                     {"multiprocessors", machine.multiprocessors},
                     {"l2_bytes", machine.l2_bytes},
                     {"max_sm_clock_mhz", machine.clock_hz * 1e-6},
                     {"peak_tflops", machine.peak_flops * 1e-12},
                     {"fma_tflops", machine.fma_flops * 1e-12},
                     {"tf32_tflops", machine.tf32_flops * 1e-12},
                     {"copy_tb_per_s", machine.copy_bytes * 1e-12},
                     {"dram_read_tb_per_s", machine.read_rates.dram * 1e-12},
                     {"l2_read_tb_per_s", machine.read_rates.l2 * 1e-12},
                     {"l1_read_tb_per_s", machine.read_rates.l1 * 1e-12},
                     {"shared_read_tb_per_s", machine.read_rates.shared * 1e-12},
                     {"launch_us", machine.launch_seconds * 1e6}};
  members.insert(members.end(), machine.libraries.begin(), machine.libraries.end());
  return Json::object(members);
}

// Of a stage and of a competitor alike.
void add_times(Members& members, const BenchRecord& bench, const std::optional<Work>& work,
               const Machine& machine, Precision precision) {
  const bool timed = work && bench.cold, fp32 = precision == Precision::kFp32;
  members.push_back({"cold_ms", to_json(bench.cold)});
  members.push_back({"warm_ms", to_json(bench.warm)});
  members.push_back({"host_late", bench.host_late});
  members.push_back({"tflops", timed ? tflops(*work, *bench.cold) : std::nan("")});
  members.push_back({"fraction_of_ceiling",
                     timed && fp32 ? ceiling_fraction(*work, *bench.cold, machine) : std::nan("")});
}

Json to_json(const CompetitorRecord& competitor, const std::optional<Work>& work,
             const Machine& machine) {
  const CompetitorInfo& info = competitor.info;
  const Record& record = competitor.bench.record;
  Members members = {{"competitor", info.competitor},
                     {"precision", to_string(info.precision)},
                     {"layout", info.layout},
                     {"library", info.library},
                     {"algorithm", competitor.algorithm},
                     {"status", record.status},
                     {"max_error_ratio", record.max_error_ratio},
                     {"message", record.message}};
  add_times(members, competitor.bench, work, machine, info.precision);
  return Json::object(members);
}

Json to_json(const BenchRecord& bench, const std::optional<Work>& work, const Machine& machine) {
  Members members = json_members(bench.record);
  members.push_back({"impossible", bench.record.status == "impossible"});
  add_times(members, bench, work, machine, bench.precision);
  const bool timed = work && bench.cold;
  members.push_back(
      {"fraction_of_copy_rate", timed ? copy_fraction(*work, *bench.cold, machine) : std::nan("")});
  return Json::object(members);
}

Json to_json(const BenchResult& result, const Machine& machine) {
  Members members = {{"problem", result.problem}, {"bias", result.bias}};
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

// Adds the name unless it is there.
void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// The cold median of the stage or competitor called `name`, if it has passed.
std::optional<double> cold_median(const BenchResult& result, const std::string& name) {
  std::optional<double> median;
  const auto look_at = [&](const BenchRecord& bench) {
    const bool passed = bench.record.stage == name && bench.record.status == "pass";
    if (passed && bench.cold) median = bench.cold->median;
  };
  for (const BenchRecord& bench : result.records) look_at(bench);
  for (const CompetitorRecord& competitor : result.competitors) look_at(competitor.bench);
  return median;
}

Standing standing(const std::vector<BenchResult>& results, const std::string& stage,
                  const std::string& competitor) {
  Standing found{stage, competitor, 0, 0, 0};
  double logarithms = 0;
  for (const BenchResult& result : results) {
    const auto own = cold_median(result, stage), other = cold_median(result, competitor);
    if (!own || !other) continue;
    logarithms += std::log(*other / *own);
    ++found.problems;
    found.won += *own < *other;
  }
  found.geometric_mean = std::exp(logarithms / found.problems);  // 0 / 0: NaN
  return found;
}

Json to_json(const Standing& standing) {
  return Json::object({{"stage", standing.stage},
                       {"competitor", standing.competitor},
                       {"problems", standing.problems},
                       {"won", standing.won},
                       {"geometric_mean", standing.geometric_mean}});
}

}  // namespace

std::vector<Standing> standings(const std::vector<BenchResult>& results) {
  std::vector<std::string> stages, competitors;
  for (const BenchResult& result : results) {
    for (const BenchRecord& bench : result.records) add_name(stages, bench.record.stage);
    for (const CompetitorRecord& competitor : result.competitors) {
      add_name(competitors, competitor.bench.record.stage);
    }
  }
  std::vector<Standing> all;
  for (const std::string& stage : stages) {
    for (const std::string& competitor : competitors) {
      all.push_back(standing(results, stage, competitor));
    }
  }
  return all;
}

std::string standings_table(const std::vector<BenchResult>& results) {
  const std::vector<Standing> all = standings(results);
  if (all.empty()) return "";
  Table table;
  table.add_column("stage", Align::kLeft);
  std::size_t competitors = 0;
  for (const Standing& each : all) {
    if (each.stage != all[0].stage) break;
    table.add_column("x " + each.competitor, Align::kRight);
    ++competitors;
  }
  for (std::size_t first = 0; first < all.size(); first += competitors) {
    std::vector<std::string> row = {all[first].stage};
    for (std::size_t i = first; i < first + competitors; ++i) {
      row.push_back(all[i].problems == 0
                        ? "-"
                        : fixed(all[i].geometric_mean, 2) + " (" + std::to_string(all[i].won) +
                              " of " + std::to_string(all[i].problems) + ")");
    }
    table.add_row(row);
  }
  return table.text();
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
  const auto add_row = [&](const BenchRecord& bench, Precision precision, bool beside_peers) {
    std::vector<std::string> row = table_row(bench, work, machine, precision);
    for (const CompetitorRecord* peer : fp32) {
      row.push_back(beside_peers && bench.cold
                        ? fixed(peer->bench.cold->median / bench.cold->median, 2)
                        : "-");
    }
    row.push_back(bench.record.status);
    table.add_row(row);
    remarks += host_late_remark(bench);
  };
  for (const BenchRecord& bench : result.records) add_row(bench, bench.precision, true);
  for (const CompetitorRecord& competitor : result.competitors) {
    add_row(competitor.bench, competitor.info.precision, false);
  }
  return table.text() + remarks;
}

Json bench_json(const Machine& machine, const std::vector<BenchResult>& results) {
  std::vector<Json> problems;
  for (const BenchResult& result : results) problems.push_back(to_json(result, machine));
  std::vector<Json> standing;
  for (const Standing& each : standings(results)) standing.push_back(to_json(each));
  return Json::object({{"format", "convladder bench"},
                       {"version", JSON_VERSION},
                       {"machine", to_json(machine)},
                       {"problems", Json::array(problems)},
                       {"standings", Json::array(standing)}});
}

}  // namespace convladder
