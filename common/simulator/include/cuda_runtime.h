// The simulator's <cuda_runtime.h>: CUDA's names for the host compiler. Names, types and meanings are
// CUDA's; where the simulator differs, it is said here. How kernels run: docs/simulator.md.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <cuda_runtime_api.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cstddef>
#include <cstdint>
#include <utility>

// ---- Qualifiers ----

// What these mean, simulator/translate.py puts in; in other files they are nothing, as in CUDA's headers.
#ifndef CONVLADDER_TRANSLATED
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __maxnreg__(registers)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)

// ---- Inside a kernel ----

namespace convladder::simulator::built_in {  // names that a program's own don't meet

// A variable that lies away from others on both sides, so that an access beyond the end of shared
// memory, which may be its neighbour, doesn't pass for one of it.
struct KeepsAway {
  KeepsAway() = default;
  KeepsAway(const KeepsAway& /*other*/) {}  // nor is it read with it
  alignas(128) char unused[64];
};
template <typename T>
struct Apart : KeepsAway, T {
  Apart& operator=(const T& value) {
    T::operator=(value);
    return *this;
  }
};

// auto [x, y, z] = threadIdx;
template <std::size_t I, typename T>
auto get(const Apart<T>& index) {
  return I == 0 ? index.x : I == 1 ? index.y : index.z;
}

}  // namespace convladder::simulator::built_in
template <typename T>
struct std::tuple_size<convladder::simulator::built_in::Apart<T>>
    : std::integral_constant<std::size_t, 3> {};
template <std::size_t I, typename T>
struct std::tuple_element<I, convladder::simulator::built_in::Apart<T>> {
  using type = unsigned;
};

// Set by the scheduler whenever it goes to another thread; a kernel only reads them.
inline thread_local convladder::simulator::built_in::Apart<uint3> threadIdx{}, blockIdx{};
inline thread_local convladder::simulator::built_in::Apart<dim3> blockDim{}, gridDim{};

#include "device_functions.h"

#include "common/simulator/launch.h"
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
