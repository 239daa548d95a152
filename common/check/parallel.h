// A loop over all cores of the host.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace convladder {

// Calls body(begin, end), which must not throw, on disjoint ranges of at most `grain` indices that
// cover [0, count). (Threads and not OpenMP, whose own don't survive a fork: PyTorch's workers are
// forked.)
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t begin; (begin = next.fetch_add(grain)) < count;) {
      body(begin, std::min(begin + grain, count));
    }
  };
  const int64_t ranges = (count + grain - 1) / grain;
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  try {
    for (int64_t i = 1; i < std::min(cores, ranges); ++i) helpers.emplace_back(work);
  } catch (const std::exception&) {  // as many as the system gives
  }
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace convladder
