// Blocks and threads by number and by coordinates, as messages and the scheduler need them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace convladder::simulator {

// "(1,0,0)"
inline std::string to_string(uint3 i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

// x runs fastest, as on a GPU.
inline uint3 unflatten(uint64_t index, dim3 extents) {
  return {static_cast<unsigned>(index % extents.x),
          static_cast<unsigned>(index / extents.x % extents.y),
          static_cast<unsigned>(index / extents.x / extents.y)};
}

}  // namespace convladder::simulator
