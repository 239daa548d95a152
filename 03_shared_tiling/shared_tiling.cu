// Stage 03: stage 02's matrix product without stage 02's matrix. A block computes a BM x BN tile of
// the output and walks along GEMM_K; for each BK of it, one tile of the filters and one of the
// im2col matrix are put into shared memory, gathered straight from the input.
//
// A value fetched from global memory serves 32 threads, and the matrix never exists in DRAM.
// Should drop: DRAM bytes against stage 02, global load requests against stage 01.
// What hurts: each thread still reads two values for every multiplication, from shared memory now,
// whose data pipe is busy long before the arithmetic units are. Stage 04 reads less per FLOP.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TM = 1, TN = 1;              // filters and output pixels per thread
constexpr int BM = 32 * TM, BN = 32 * TN;  // filters and output pixels (any of the N·P·Q) per block
constexpr int BK = 32;                     // filter taps (c,r,s) per tile
constexpr int THREADS = BM / TM * (BN / TN);
constexpr int STEP = THREADS / BN;  // from a tap that a thread loads to its next

__global__ void __launch_bounds__(THREADS)
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,    // [N,C,H,W]
                 const float* __restrict__ filters,  // [K,C,R,S]
                 float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ __align__(16) float w_tile[BM][BK];
  __shared__ __align__(16) float x_tile[BK][BN];
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
  float sum = 0.0f;
  for (int crs = 0; crs < CRS; crs += BK) {
    __syncthreads();  // the tiles before are read to the end
    UNROLL for (int i = 0; i < BM * BK; i += THREADS) {
      const int m = (i + tid) / BK, j = (i + tid) % BK;
      const bool inside = (block.k0 + m < block.k_end) & (crs + j < CRS);
      w_tile[m][j] = inside ? filters[(block.k0 + m) * CRS + crs + j] : 0.0f;
    }
    UNROLL for (int i = 0; i < BK; i += STEP) {
      const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
      const bool inside = within(h, shape.H) & within(w, shape.W) & (tap.c < shape.C);
      x_tile[i + row][col] = inside ? image[(tap.c * shape.H + h) * shape.W + w] : 0.0f;
      tap.next(shape);
    }
    __syncthreads();                                // these tiles are complete
    UNROLL_BY(4) for (int i = 0; i < BK; i += 4) {  // more takes registers: one block fewer
      __align__(16) float w[4];
      vec4(w) = vec4(&w_tile[ty][i]);  // the same for the warp
      UNROLL for (int j = 0; j < 4; ++j) sum += w[j] * x_tile[i + j][tx];
    }
  }

  const int k1 = block.k0 + ty * TM;
  const Pixel out = pixels[tx];
  if (out.n < shape.N && k1 < block.k_end) output[offset(out, k1, shape)] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  conv2d_tiled<<<tile_grid(shape, BM, BN), THREADS, 0, stream>>>(shape, conv.input, conv.filters,
                                                                 conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"03_shared_tiling", "tiles in shared memory", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
