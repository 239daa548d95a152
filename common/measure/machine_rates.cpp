#include "common/measure/machine_rates.h"

#include <set>
#include <stdexcept>

#include "common/io/json.h"

namespace convladder {
namespace {

constexpr const char* FORMAT = "convladder machine";
constexpr int VERSION = 1;

struct Figure {
  const char* name;
  double unit;
  double MachineRates::*rate;
  bool required;
};

constexpr Figure FIGURES[] = {
    {"multiprocessors", 1, &MachineRates::multiprocessors, true},
    {"clock_mhz", 1e6, &MachineRates::clock_hz, true},
    {"fmas_per_cycle", 1, &MachineRates::fmas_per_cycle, true},
    {"wavefronts_per_cycle", 1, &MachineRates::wavefronts_per_cycle, true},
    {"dram_tb_per_s", 1e12, &MachineRates::dram_bytes, true},
    {"l2_bytes", 1, &MachineRates::l2_bytes, true},
    {"fma_tflops", 1e12, &MachineRates::fma_flops, true},
    {"launch_us", 1e-6, &MachineRates::launch_seconds, false},
    {"tf32_tflops", 1e12, &MachineRates::tf32_flops, false},
};

MachineRates rates_of(const JsonValue& file) {
  if (file.text("format") != FORMAT) {
    throw std::runtime_error(std::string("its format is not \"") + FORMAT + "\"");
  }
  if (file.number("version") != VERSION) throw std::runtime_error("of another version");
  MachineRates rates;
  rates.gpu = file.text("gpu");
  std::set<std::string> found;
  for (const JsonValue& entry : file.items("rates")) {
    const std::string& name = entry.text("name");
    if (!found.insert(name).second) throw std::runtime_error("'" + name + "' is there twice");
    const Figure* known = nullptr;
    for (const Figure& figure : FIGURES) known = name == figure.name ? &figure : known;
    if (!known) throw std::runtime_error("'" + name + "' is no rate that is known");
    const double value = entry.number("value");
    if (value <= 0) throw std::runtime_error("'" + name + "' is not above 0");
    rates.*known->rate = value * known->unit;
  }
  for (const Figure& figure : FIGURES) {
    if (figure.required && found.count(figure.name) == 0) {
      throw std::runtime_error(std::string("'") + figure.name + "' is missing");
    }
  }
  return rates;
}

}  // namespace

MachineRates read_machine(const std::string& path) {
  const JsonValue file = read_json(path);
  try {
    return rates_of(file);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

void write_machine(const std::string& path, const std::string& gpu,
                   const std::vector<MachineFigure>& figures) {
  std::vector<Json> rates;
  for (const MachineFigure& figure : figures) {
    if (figure.value == 0) continue;
    rates.push_back(
        Json::object({{"name", figure.name}, {"value", figure.value}, {"source", figure.source}}));
  }
  write_json(
      path,
      Json::object(
          {{"format", FORMAT}, {"version", VERSION}, {"gpu", gpu}, {"rates", Json::array(rates)}}));
}

}  // namespace convladder
