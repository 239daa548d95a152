#include "common/measure/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

namespace convladder {
namespace {

// Bits of clocks_event_reasons.active: nvmlClocksEventReasons of NVML's API reference.
constexpr const char* REASONS[] = {"gpu_idle",
                                   "applications_clocks_setting",
                                   "sw_power_cap",
                                   "hw_slowdown",
                                   "sync_boost",
                                   "sw_thermal_slowdown",
                                   "hw_thermal_slowdown",
                                   "hw_power_brake_slowdown",
                                   "display_clock_setting"};

// null for "[N/A]" and the like.
Json number_of(const std::string& field) {
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  return !field.empty() && *end == '\0' ? Json(value) : Json();
}

// The first line that `command` prints; empty if it fails.
std::string first_line(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  char line[256] = "";
  if (!std::fgets(line, sizeof line, pipe)) line[0] = '\0';
  while (std::fgetc(pipe) != EOF) continue;
  return pclose(pipe) == 0 ? line : "";
}

// Reads the line that nvidia-smi answers, "570.86, 1980, 612.35, 54, 0x0000000000000004"; null for another.
Json parse_gpu_state(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream >> std::ws, field, ',');) fields.push_back(field);
  if (fields.size() != 5) return nullptr;
  Json reasons = Json::array();
  uint64_t bits = std::strtoull(fields[4].c_str(), nullptr, 16);
  for (const char* reason : REASONS) {
    if (bits & 1) reasons.push_back(reason);
    bits >>= 1;
  }
  if (bits != 0) reasons.push_back("other");
  return {{"driver", fields[0]},
          {"sm_clock_mhz", number_of(fields[1])},
          {"power_watt", number_of(fields[2])},
          {"temperature_celsius", number_of(fields[3])},
          {"throttle_reasons", reasons}};
}

}  // namespace

Json to_json(const Machine& m) {
  Json members = {{"gpu", m.name},
                  {"compute_capability", m.compute_capability},
                  {"cuda_runtime", m.cuda_runtime},
                  {"driver", m.driver},
                  {"multiprocessors", m.multiprocessors},
                  {"l2_bytes", m.l2_bytes},
                  {"max_sm_clock_mhz", m.clock_hz * 1e-6},
                  {"peak_tflops", m.peak_flops * 1e-12},
                  {"fma_tflops", m.fma_flops * 1e-12},
                  {"tf32_tflops", m.tf32_flops * 1e-12},
                  {"wgmma_tflops", m.wgmma_flops * 1e-12},
                  {"copy_tb_per_s", m.copy_bytes * 1e-12},
                  {"dram_read_tb_per_s", m.read.dram * 1e-12},
                  {"l2_read_tb_per_s", m.read.l2 * 1e-12},
                  {"l1_read_tb_per_s", m.read.l1 * 1e-12},
                  {"shared_read_tb_per_s", m.read.shared * 1e-12},
                  {"launch_us", m.launch_seconds * 1e6}};
  for (const auto& [name, version] : m.libraries) members[name] = version;
  return members;
}

Json query_gpu_state(const std::string& pci_bus_id) {
  // Drivers before 535 know the reasons under their older name only.
  for (const char* reasons : {"clocks_event_reasons", "clocks_throttle_reasons"}) {
    Json state = parse_gpu_state(first_line(
        fmt::format("nvidia-smi --id={} --format=csv,noheader,nounits --query-gpu="
                    "driver_version,clocks.sm,power.draw,temperature.gpu,{}.active 2>/dev/null",
                    pci_bus_id, reasons)));
    if (!state.is_null()) return state;
  }
  return nullptr;
}

Json statistics(std::vector<double> samples) {
  if (samples.empty()) throw InvalidArgument("samples = 0: there is nothing to summarise");
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double fraction) {
    const double position = fraction * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (position - std::floor(position)) * (samples[above] - samples[below]);
  };
  return {{"median", quantile(0.5)},
          {"lower_quartile", quantile(0.25)},
          {"upper_quartile", quantile(0.75)},
          {"min", samples.front()},
          {"max", samples.back()},
          {"count", samples.size()}};
}

double floor_ms(const Work& work, const Machine& machine, Cache cache) {
  // Cold, the L2 is full of what the flush wrote: each line that comes pushes one of those out to
  // memory, so that results left in the cache are no saving.
  const double cached = cache == Cache::kWarm ? machine.l2_bytes : 0;
  const double moved = std::max(0.0, work.bytes - cached);
  return 1e3 * std::max(work.needed_flops / machine.peak_flops, moved / machine.copy_bytes);
}

void add_times(Json& record, const Samples& samples, const Work& work, Precision precision,
               const Machine& machine) {
  record["cold_ms"] = statistics(samples.cold);
  record["warm_ms"] = statistics(samples.warm);
  record["host_late"] = samples.host_late;
  const double cold = record["cold_ms"]["median"], rate = work.flops / (cold * 1e-3);
  const bool fp32 = precision == Precision::kFp32;
  record["tflops"] = rate * 1e-12;
  record["fraction_of_ceiling"] = fp32 ? Json(rate / machine.fma_flops) : Json();
  record["fraction_of_copy_rate"] = work.bytes / (cold * 1e-3) / machine.copy_bytes;
  std::string message = record["message"];
  for (const auto& [name, cache] : {std::pair("cold", Cache::kCold), {"warm", Cache::kWarm}}) {
    const double time = record[std::string(name) + "_ms"]["median"];
    const double floor = floor_ms(work, machine, cache);
    if (time >= floor) continue;  // which a NaN is not
    record["status"] = "impossible";
    message += fmt::format("{}{:.4g} ms {} is below the floor of {:.4g} ms",
                           message.empty() ? "" : "; ", time, name, floor);
  }
  record["message"] = message;
}

}  // namespace convladder
