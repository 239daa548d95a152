// Tiles of several warps.
// seen: {tile}: error: block_tile_memory: tiles of several warps are not simulated
// status: 1
#include <cooperative_groups.h>

__global__ void kernel() {
  __shared__ cooperative_groups::block_tile_memory<256> memory;  // tile
}

int main() { kernel<<<1, 1>>>(); }
