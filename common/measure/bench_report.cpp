#include "common/measure/bench_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace convladder {
namespace {

// Increase whenever a reader of the JSON would go wrong with what is written now.
constexpr int JSON_VERSION = 1;

double tflops(const Work& work, const Statistics& times) {
  return work.flops / (times.median * 1e9);
}

double ceiling_fraction(const Work& work, const Statistics& times, const Machine& machine) {
  return work.flops / (times.median * 1e-3) / machine.fma_flops;
}

double copy_fraction(const Work& work, const Statistics& times, const Machine& machine) {
  return work.bytes / (times.median * 1e-3) / machine.copy_bytes;
}

Json to_json(const std::optional<Statistics>& times) {
  if (!times) return nullptr;
  return Json::object({{"median", times->median},
                       {"lower_quartile", times->lower_quartile},
                       {"upper_quartile", times->upper_quartile},
                       {"min", times->least},
                       {"max", times->most},
                       {"count", times->count}});
}

Json to_json(const Machine& machine) {
  Json members = {{"gpu", machine.name},
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
  for (const auto& [name, version] : machine.libraries) members.push_back({name, version});
  return members;
}

// Of a stage and of a competitor alike.
void add_times(Json& members, const BenchRecord& bench, const std::optional<Work>& work,
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
  Json members = {{"competitor", info.competitor},
                  {"precision", to_string(info.precision)},
                  {"layout", info.layout},
                  {"library", info.library},
                  {"algorithm", competitor.algorithm},
                  {"status", record.status},
                  {"max_error_ratio", record.max_error_ratio},
                  {"message", record.message}};
  add_times(members, competitor.bench, work, machine, info.precision);
  return members;
}

Json to_json(const BenchRecord& bench, const std::optional<Work>& work, const Machine& machine) {
  Json members = to_json(bench.record);
  members.push_back({"impossible", bench.record.status == "impossible"});
  add_times(members, bench, work, machine, bench.precision);
  const bool timed = work && bench.cold;
  members.push_back(
      {"fraction_of_copy_rate", timed ? copy_fraction(*work, *bench.cold, machine) : std::nan("")});
  return members;
}

Json to_json(const BenchResult& result, const Machine& machine) {
  Json members = {{"problem", result.problem}, {"bias", result.bias}};
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
  members.push_back({"records", Json(records)});
  std::vector<Json> competitors;
  for (const CompetitorRecord& competitor : result.competitors) {
    competitors.push_back(to_json(competitor, work, machine));
  }
  members.push_back({"competitors", Json(competitors)});
  return members;
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

Json bench_json(const Machine& machine, const std::vector<BenchResult>& results) {
  std::vector<Json> problems;
  for (const BenchResult& result : results) problems.push_back(to_json(result, machine));
  std::vector<Json> standing;
  for (const Standing& each : standings(results)) standing.push_back(to_json(each));
  return Json::object({{"format", "convladder bench"},
                       {"version", JSON_VERSION},
                       {"machine", to_json(machine)},
                       {"problems", Json(problems)},
                       {"standings", Json(standing)}});
}

}  // namespace convladder
