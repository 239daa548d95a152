// Stage 06: stage 05, with copies that nobody waits for. They go from global to shared memory past
// the registers; while one tile is multiplied, those of the next SLOTS - 1 are under way.
//
// Should drop: the time warps wait for global memory. The threads ask for as many bytes as before.
// What hurts: one copy per value, each with an address to be worked out from its channel, row and
// column. Stage 07 does that once, beforehand.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TM = 12, TN = 8;            // filters and output pixels per thread
constexpr int BM = 8 * TM, BN = 16 * TN;  // filters and output pixels (any of the N·P·Q) per block
constexpr int BK = 8;                     // filter taps (c,r,s) per tile
constexpr int SLOTS = 3;                  // tiles in shared memory: one is read, the others filled
constexpr int THREADS = BM / TM * (BN / TN);
constexpr int STEP = THREADS / BN;  // from a tap that a thread loads to its next

struct Tile {
  float w[BK][BM + 4], x[BK][BN];
};

__global__ void __launch_bounds__(THREADS, 3)
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,    // [N,C,H,W]
                 const float* __restrict__ filters,  // [K,C,R,S]
                 const float* __restrict__ bias,     // [K], or null
                 float* __restrict__ output,         // [N,K,P,Q]
                 bool relu) {
  __shared__ __align__(16) Tile slots[SLOTS];
  const int tid = threadIdx.x, CRS = shape.CRS();
  const Block block(blockIdx.x, shape, BM);
  const PixelRange pixels(int64_t{block.column} * BN, shape);

  // What this thread loads of x: every STEP-th tap of one pixel.
  const int row = tid / BN, col = tid % BN;
  const Pixel at = pixels[col];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  const float* image =
      input + (exists ? at.n * shape.input_pitch() : 0) + block.group * shape.CHW();
  TapWalk tap(row, STEP, shape);

  const int tx = tid % (BN / TN), ty = tid / (BN / TN);
  float sum[TM][TN] = {};
  const int tiles = (CRS + BK - 1) / BK;
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const int crs = (tile + SLOTS - 1) * BK;  // beyond the last tile: zeros
    UNROLL for (int i = 0; i < BM * BK; i += THREADS) {
      const int m = (i + tid) / BK, j = (i + tid) % BK;
      const bool inside = (block.k0 + m < block.k_end) & (crs + j < CRS);
      copy_async<4>(&slot->w[j][m], &filters[index(block.k0 + m, crs + j, CRS)], inside);
    }
    UNROLL for (int i = 0; i < BK; i += STEP) {
      const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
      const bool inside = within(h, shape.H) & within(w, shape.W) & (tap.c < shape.C);
      const float* x = &image[index(index(tap.c, h, shape.H), w, shape.W)];
      copy_async<4>(&slot->x[i + row][col], x, inside);
      tap.next(shape);
    }
    __pipeline_commit();
    slot = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // from the newest tile to the oldest
    if (tile < 0) continue;
    UNROLL for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM], x[TN];
      UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(&slot->w[i][ty * TM + m]);
      UNROLL for (int j = 0; j < TN; j += 4) vec4(x + j) = vec4(&slot->x[i][tx * 4 + j * (BN / 8)]);
      UNROLL for (int m = 0; m < TM; ++m) {
        UNROLL for (int t = 0; t < TN; ++t) {
          const int j = m % 2 ? TN - 1 - t : t;  // to and fro: the last x is the next one, too
          sum[m][j] += w[m] * x[j];
        }
      }
    }
  }
  __pipeline_wait_prior(0);  // no copy is left under way when the block ends

  const int k1 = block.k0 + ty * TM;
  UNROLL for (int m = 0; m < TM; ++m) {
    const float b = bias && k1 + m < block.k_end ? bias[k1 + m] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  }
  UNROLL for (int j = 0; j < TN; ++j) {
    const Pixel out = pixels[tx * 4 + j % 4 + j / 4 * (BN / 2)];
    float* to = output + offset(out, k1, shape);
    UNROLL for (int m = 0; m < TM; ++m) {
      if (out.n < shape.N && k1 + m < block.k_end) to[m * shape.PQ()] = sum[m][j];
    }
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  conv2d_tiled<<<tile_grid(shape, BM, BN), THREADS, 0, stream>>>(shape, conv.input, conv.filters,
                                                                 conv.bias, conv.output, conv.relu);
}

CONVLADDER_REGISTER_STAGE({"06_async_copies", "copies nobody waits for", enqueue, nullptr, true});

}  // namespace
}  // namespace convladder
