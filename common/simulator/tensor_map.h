// Tensor maps: what the copy engine fetches for one instruction, and where in shared memory it puts that.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace convladder::simulator {

// What a CUtensorMap holds here. Extents and coordinates begin with the innermost.
struct TensorMap {
  uint64_t mark;  // so that other memory does not pass for a map
  uint64_t tensor;
  uint64_t strides[4];  // bytes
  uint32_t last[5];     // coordinates: sizes - 1
  uint16_t box[5];      // tiled: elements; im2col: channels, pixels
  int16_t lower[3], upper[3];
  uint8_t steps[5], rank, element_bytes, swizzle, fills_nan, is_im2col, rounds_to_tf32;

  int64_t bytes() const;  // that one copy moves
  // From row to row in shared memory, where a swizzled row takes all that is swizzled together.
  uint32_t pitch() const { return swizzle == 0 ? box[0] * element_bytes : 16u << swizzle; }
  int64_t shared_bytes() const { return bytes() / (box[0] * element_bytes) * pitch(); }
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

// Throws KernelError where there is none.
const TensorMap& read_tensor_map(const void* map);

// Bytes in a row of a copy: where they go in shared memory, and lie in the tensor; null: outside of it.
struct Piece {
  uint32_t at, bytes;
  const char* tensor;
};
// Throws KernelError where a GPU does not carry out the copy.
std::vector<Piece> pieces_of(const TensorMap& map, const int* at, const int* offsets);

// The 16 bytes at an address of shared memory lie, by the swizzle of 16 << swizzle bytes, at this one.
constexpr uint32_t swizzled(uint32_t address, int swizzle) {
  return address ^ (address >> 3 & 0x10u * ((1u << swizzle) - 1));
}

}  // namespace convladder::simulator
