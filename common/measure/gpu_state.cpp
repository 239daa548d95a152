#include "common/measure/gpu_state.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

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

// NaN for "[N/A]" and the like.
double number(const std::string& field) {
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  return !field.empty() && *end == '\0' ? value : std::nan("");
}

std::vector<std::string> reasons(uint64_t bits) {
  std::vector<std::string> names;
  for (const char* reason : REASONS) {
    if (bits & 1) names.push_back(reason);
    bits >>= 1;
  }
  if (bits != 0) names.push_back("other");
  return names;
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

}  // namespace

std::optional<GpuState> parse_gpu_state(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream >> std::ws, field, ',');) fields.push_back(field);
  if (fields.size() != 5) return std::nullopt;
  GpuState state;
  state.driver = fields[0];
  state.sm_clock_mhz = number(fields[1]);
  state.power_watt = number(fields[2]);
  state.temperature_celsius = number(fields[3]);
  state.throttle_reasons = reasons(std::strtoull(fields[4].c_str(), nullptr, 16));
  return state;
}

std::optional<GpuState> query_gpu_state(const std::string& pci_bus_id) {
  // Drivers before 535 know the reasons under their older name only.
  for (const std::string reasons : {"clocks_event_reasons", "clocks_throttle_reasons"}) {
    const std::string line = first_line(
        "nvidia-smi --id=" + pci_bus_id + " --format=csv,noheader,nounits --query-gpu=" +
        "driver_version,clocks.sm,power.draw,temperature.gpu," + reasons + ".active 2>/dev/null");
    if (auto state = parse_gpu_state(line)) return state;
  }
  return std::nullopt;
}

std::string to_string(const GpuState& state) {
  std::string text;
  const auto append = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  const auto append_number = [&](double value, const char* unit) {
    if (!std::isnan(value)) append(fmt::format("{:.0f}", value) + unit);
  };
  append_number(state.sm_clock_mhz, " MHz");
  append_number(state.power_watt, " W");
  append_number(state.temperature_celsius, " C");
  for (const std::string& reason : state.throttle_reasons) append(reason);
  return text;
}

Json to_json(const std::optional<GpuState>& state) {
  if (!state) return nullptr;
  return Json::object({{"sm_clock_mhz", state->sm_clock_mhz},
                       {"power_watt", state->power_watt},
                       {"temperature_celsius", state->temperature_celsius},
                       {"throttle_reasons", state->throttle_reasons}});
}

}  // namespace convladder
