// The random numbers behind the order of blocks and threads.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace convladder::simulator {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  template <typename Iterator>
  void shuffle(Iterator begin, Iterator end) {
    for (auto i = end - begin; i > 1; --i) std::swap(begin[i - 1], begin[next() % i]);
  }

 private:
  uint64_t state_;
};

}  // namespace convladder::simulator

#include "common/simulator/include/names_end.h"
