// What nvidia-smi says of a GPU at one moment: what else but the kernel decides how long it takes.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/check/files.h"

namespace convladder {

struct GpuState {
  std::string driver;
  double sm_clock_mhz = std::numeric_limits<double>::quiet_NaN();  // NaN: the GPU doesn't say
  double power_watt = std::numeric_limits<double>::quiet_NaN();
  double temperature_celsius = std::numeric_limits<double>::quiet_NaN();
  // What keeps the clock below its highest, by nvidia-smi's names: {"sw_power_cap"}.
  std::vector<std::string> throttle_reasons;
};

// Of the GPU at `pci_bus_id` ("0000:3B:00.0"); none where nvidia-smi is missing or fails.
std::optional<GpuState> query_gpu_state(const std::string& pci_bus_id);

// The line that nvidia-smi answers: "570.86, 1980, 612.35, 54, 0x0000000000000004". None if it is
// another.
std::optional<GpuState> parse_gpu_state(const std::string& line);

// "1980 MHz, 612 W, 54 C, sw_power_cap"; what the GPU doesn't say is left out.
std::string to_string(const GpuState& state);

// null for none.
Json to_json(const std::optional<GpuState>& state);

}  // namespace convladder
