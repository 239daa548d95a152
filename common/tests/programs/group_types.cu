// Sizes and ranks of cooperative groups have CUDA's types: 32 bits in a block and a tile, 64 in the grid. And
// alignas() may name a type, before __shared__ and behind it.
#include <cooperative_groups.h>

#include <cstdio>
#include <type_traits>

namespace cg = cooperative_groups;

template <typename T>
constexpr bool IS_32 = std::is_same_v<T, unsigned>;

struct Pair {
  double first, second;
};
__shared__ alignas(32) float outside[8];

__global__ void sizes(unsigned* out, unsigned n) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const auto lanes = cg::coalesced_threads();
  static_assert(IS_32<decltype(block.size())> && IS_32<decltype(block.thread_rank())>);
  static_assert(IS_32<decltype(tile.size())> && IS_32<decltype(tile.meta_group_rank())>);
  static_assert(IS_32<decltype(lanes.size())> && IS_32<decltype(lanes.thread_rank())>);
  static_assert(std::is_same_v<decltype(cg::this_grid().size()), unsigned long long>);
  cg::thread_block::sync();
  const cg::thread_group any = block;
  out[cg::thread_block::thread_rank()] = min(block.size(), n) + min(tile.num_threads(), n) +
                                         min(lanes.size(), n) + static_cast<unsigned>(any.size()) +
                                         (block.thread_rank() * 2654435761u >> 31);
}

__global__ void aligned(double* out) {
  alignas(Pair) __shared__ char before[sizeof(Pair)];
  __shared__ alignas(double) unsigned char behind[16];
  extern __shared__ alignas(16) double dynamic[];
  reinterpret_cast<Pair*>(before)->second = 1;
  *reinterpret_cast<double*>(behind) = 2;
  dynamic[0] = 3, outside[0] = 4;
  out[0] = reinterpret_cast<Pair*>(before)->second + *reinterpret_cast<double*>(behind) +
           dynamic[0] + outside[0];
}

int main() {
  unsigned* out = nullptr;
  double* sum = nullptr;
  cudaMallocManaged(&out, 64 * sizeof(unsigned));
  cudaMallocManaged(&sum, sizeof(double));
  sizes<<<1, 64>>>(out, 100);
  aligned<<<1, 1, 64>>>(sum);
  cudaDeviceSynchronize();
  const bool right = out[0] == 64 + 8 + 32 + 64 && out[1] == out[0] + 1 && sum[0] == 10;
  std::printf(right ? "all right\n" : "wrong\n");
  cudaFree(out);
  cudaFree(sum);
  return right ? 0 : 1;
}
