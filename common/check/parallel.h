// A loop over all cores of the host.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace convladder {

// Calls body(begin, end) on disjoint ranges that cover [0, count), `grain` indices or fewer at a
// time, from as many threads as there are cores. An exception in `body` is thrown again here, after
// all threads have ended; the ranges not yet begun are then left out.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (int64_t begin; (begin = next.fetch_add(grain)) < count;) {
        body(begin, std::min(begin + grain, count));
      }
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(failure_mutex);
      failure = std::current_exception();
    }
  };

  const int64_t ranges = (count + grain - 1) / grain;
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  try {
    for (int64_t i = 1; i < std::min(cores, ranges); ++i) helpers.emplace_back(work);
  } catch (const std::exception&) {
    // No more threads to be had, or no memory for one: those that run, this one at least, do it all.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace convladder
