// Stage 14: stage 13 with warps of two kinds: four copy, eight multiply, by Hopper's wgmma.
//
// One instruction multiplies 64 pixels by all of a block's filters: the pixels from registers, where they
// are cut, the filters from shared memory. A bulk copy fetches these, in the order that wgmma reads.
// Barriers in shared memory say which tiles are there, and which are read: each kind awaits the other.
// Should drop: the time, and shared wavefronts: filters are read by the tensor cores themselves.
// What hurts: the copies of pixels, 4 bytes each. All products wait for them.
#include "common/core/add_parts.h"
#include "common/core/copy_async.h"
#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/pack.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BN = 128;  // output pixels (any of the N·P·Q) per block
constexpr int BK = 32;   // filter taps (c,r,s) per tile
constexpr int COPYING = BN, MULTIPLYING = 2 * BN, THREADS = MULTIPLYING + COPYING;

template <int BM, bool THREE>  // filters per block; whether a product takes three
struct Tiles {
  static constexpr int W = (THREE ? 2 : 1) * BM * BK;  // so many values of the filters
  float w[W], x[BK][BN + 8];                           // four taps lie in banks of their own
};

// Tiles in the shared memory of a block: one is read, the others filled.
template <int TM, bool THREE>
constexpr int SLOTS = 225 * 1024 / sizeof(Tiles<8 * TM, THREE>);

template <int TM, bool THREE>  // an eighth of the block's filters
__global__ void __launch_bounds__(THREADS, 1)
    conv2d_warpgroups(ConvShape shape,
                      const float* __restrict__ input,   // [N,C,H,W]
                      const float* __restrict__ packed,  // [rows][all tiles][W]
                      const Tap* __restrict__ taps,      // [all * BK + ...]
                      const float* __restrict__ bias,    // [K], or null
                      float* __restrict__ output,        // [N,K,P,Q], or [parts][N,K,P,Q]
                      bool relu) {
  constexpr int BM = 8 * TM, COUNT = SLOTS<TM, THREE>;
  using Tile = Tiles<BM, THREE>;
  extern __shared__ __align__(1024) char dynamic[];
  Tile* const slots = reinterpret_cast<Tile*>(dynamic);  // [COUNT]
  __shared__ Barrier full[COUNT], empty[COUNT];
  const int tid = threadIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int all = (shape.CRS() + BK - 1) / BK, first = all / parts * part + min(part, all % parts);
  const int tiles = all / parts + (part < all % parts);
  const Block block(blockIdx.x, shape, BM);
  const PixelRange pixels(int64_t{block.column} * BN, shape);
  if (tid == 0) {
    for (Barrier& barrier : full) init_barrier(&barrier, COPYING + 1);
    for (Barrier& barrier : empty) init_barrier(&barrier, MULTIPLYING / 32);
    start_barriers();
  }
  __syncthreads();  // the barriers are ready

  if (tid >= MULTIPLYING) {
    give_registers<40>();
    // What this thread loads of x: all taps of one pixel. Each lane knows one tap of a tile.
    const int column = tid - MULTIPLYING;
    const Pixel at = pixels[column];
    const bool exists = at.n < shape.N;
    const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
    const int w0 = at.q * shape.stride_w - shape.pad_w;
    input += block.group * shape.CHW();
    const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
    packed += (int64_t{block.row} * all + first) * Tile::W;
    taps += first * BK + tid % 32;
    Tap own = *taps;
    for (int tile = 0; tile < tiles; ++tile) {
      const int i = tile % COUNT;
      wait(&empty[i], tile / COUNT % 2 ^ 1);  // the tile that was there is read to the end
      if (column == 0) {
        arrive_and_expect(&full[i], sizeof(slots[i].w));
        copy_bulk(slots[i].w, packed + int64_t{tile} * Tile::W, sizeof(slots[i].w), &full[i]);
      }
      const Tap next = taps[(tile + 1) * BK];
      UNROLL for (int k = 0; k < BK; ++k) {
        const int offset = __shfl_sync(~0u, own.offset, k);
        const int h = __shfl_sync(~0u, own.h, k), w = __shfl_sync(~0u, own.w, k);
        const bool inside = within(h0 + h, shape.H) & within(w0 + w, shape.W);
        copy_async<4>(&slots[i].x[k][column], corner + offset, inside);
      }
      arrive_when_copied(&full[i]);
      own = next;
    }
    return;
  }

  // A warp multiplies 16 pixels by all filters. A thread has two pixels, 8 apart.
  take_registers<232>();
  const int t = tid % 4, row = tid / 32 * 16 + tid % 32 / 4;
  float sum[BM / 2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int i = tile % COUNT;
    wait(&full[i], tile / COUNT % 2);  // the tile is there
    float x[BK / 2], x_low[BK / 2];
    UNROLL for (int e = 0; e < BK / 2; ++e) {
      const float whole = slots[i].x[e / 2 * 4 + t][row + e % 2 * 8];
      x[e] = to_tf32(whole);
      if (THREE) x_low[e] = rest_in_tf32<true>(whole, x[e]);
    }
    const uint64_t w = descriptor(slots[i].w),
                   w_low = descriptor(slots[i].w + (THREE ? BM * BK : 0));
    float d[THREE ? BM / 2 : 1];
    products_begin();
    if constexpr (THREE) {  // the smallest first
      UNROLL for (int k = 0; k < BK / 8; ++k) multiply<BM>(d, x_low + 4 * k, w + 2 * k, k > 0);
      UNROLL for (int k = 0; k < BK / 8; ++k) multiply<BM>(d, x + 4 * k, w_low + 2 * k, 1);
      UNROLL for (int k = 0; k < BK / 8; ++k) multiply<BM>(d, x + 4 * k, w + 2 * k, 1);
    } else {
      UNROLL for (int k = 0; k < BK / 8; ++k) multiply<BM>(sum, x + 4 * k, w + 2 * k, 1);
    }
    products_commit();
    products_wait(sum, d);
    __syncwarp();  // all lanes have read their pixels
    if (tid % 32 == 0) arrive(&empty[i]);
    if constexpr (THREE) {
      UNROLL for (int j = 0; j < BM / 2; ++j) sum[j] += d[j];
    }
  }

  // Partial sums lie like the output, part by part. The first has the bias; ReLU comes when all are added.
  if (parts > 1) output += part * shape.output_count(), relu = 0, bias = part ? nullptr : bias;
  const Pixel out[2] = {pixels[row], pixels[row + 8]};
  float* const to[2] = {output + offset(out[0], block.k0, shape),
                        output + offset(out[1], block.k0, shape)};
  const int PQ = shape.PQ();
  float b[BM / 4];  // of two filters in each eight; read together, since each takes its time
  UNROLL for (int j = 0; j < BM / 4; ++j) {
    const int k = block.k0 + j / 2 * 8 + t * 2 + j % 2;
    b[j] = bias && k < block.k_end ? bias[k] : 0.0f;
  }
  UNROLL for (int j = 0; j < BM / 2; ++j) {
    const int m = j / 4 * 8 + t * 2 + j % 2, e = j / 2 % 2;
    sum[j] += b[j / 4 * 2 + j % 2];
    if (relu && sum[j] < 0.0f) sum[j] = 0.0f;  // false for NaN, which stays
    if (out[e].n < shape.N & block.k0 + m < block.k_end) to[e][m * PQ] = sum[j];
  }
}

template <bool THREE>
constexpr TileSizes SIZES = {8, BK, 64, THREE ? 2 : 1, WARPGROUP_COSTS[THREE], THREE ? 20 : 32};

template <bool THREE>
std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  return best_plan(shape, limit, SIZES<THREE>).bytes;
}

template <bool THREE, int TM = 8>
void enqueue_tiles(const Convolution& conv, const Plan& plan, cudaStream_t stream) {
  if constexpr (TM < SIZES<THREE>.most_TM) {
    if (plan.TM > TM) return enqueue_tiles<THREE, TM + 4>(conv, plan, stream);
  }
  constexpr int BM = 8 * TM, BYTES = SLOTS<TM, THREE> * sizeof(Tiles<BM, THREE>);
  const ConvShape& shape = conv.shape;
  const Packed to = plan.packed(conv, BK);
  using Order = std::conditional_t<THREE, CutSwizzled, RoundedSwizzled>;
  pack<BM, Order><<<to.blocks, dim3(32, 32), 0, stream>>>(shape, conv.filters, to);
  const dim3 grid(tile_grid(shape, BM, BN), plan.parts);
  auto* const kernel = conv2d_warpgroups<TM, THREE>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  kernel<<<grid, THREADS, BYTES, stream>>>(shape, conv.input, to.filters, to.taps, conv.bias,
                                           plan.output(conv), conv.relu);
  add_parts(plan.parts, conv, stream);
}

template <bool THREE>
void enqueue(const Convolution& conv, cudaStream_t stream) {
  enqueue_tiles<THREE>(conv, best_plan(conv.shape, conv.workspace_bytes, SIZES<THREE>), stream);
}

CONVLADDER_REGISTER_STAGE({"14_warpgroups", "products of four warps, copies by others",
                           enqueue<true>, workspace<true>, true, FP32, true, 90});
CONVLADDER_REGISTER_STAGE({"14_warpgroups_tf32", "the same, one product in TF32", enqueue<false>,
                           workspace<false>, true, TF32, true, 90});

}  // namespace
}  // namespace convladder
