#include "common/measure/bench.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace convladder {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

}  // namespace

Statistics summarise(std::vector<double> samples) {
  if (samples.empty()) throw InvalidArgument("samples = 0: there is nothing to summarise");
  std::sort(samples.begin(), samples.end());
  return {static_cast<int>(samples.size()), samples.front(),         quantile(samples, 0.25),
          quantile(samples, 0.5),           quantile(samples, 0.75), samples.back()};
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
    bench.record.message += (bench.record.message.empty() ? "" : "; ") +
                            fmt::format("{:.4g}", time) + " ms " + name +
                            " is below the floor of " + fmt::format("{:.4g}", floor) + " ms";
  };
  check("cold", bench.cold ? bench.cold->median : std::nan(""), Cache::kCold);
  check("warm", bench.warm ? bench.warm->median : std::nan(""), Cache::kWarm);
}

double trial_bytes(const std::vector<Stage>& stages, const ConvShape& shape, bool bias) {
  constexpr double ROUNDING = 2 << 20;  // cudaMalloc gives whole pages of 2 MiB
  constexpr int BUFFERS = 5;            // input, filters, bias, output, workspace
  const double tensors =
      sizeof(float) * static_cast<double>(shape.input_count() + shape.filter_count() +
                                          shape.output_count() + (bias ? shape.total_K() : 0));
  double bytes = 0;
  for (const Stage& stage : stages) {
    bytes += tensors + static_cast<double>(workspace_bytes(stage, shape)) + BUFFERS * ROUNDING;
  }
  return bytes;
}

std::string memory_shortage(double needed, const std::string& what, double available, int batch) {
  return "out of device memory: " + fmt::format("{:.0f}", needed) + " bytes needed for " + what +
         ", " + fmt::format("{:.0f}", available) + " free; " +
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
