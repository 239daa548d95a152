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
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 32;  // filters per block: threadIdx.y
constexpr int BN = 32;  // output pixels per block, any of the N·P·Q: threadIdx.x
constexpr int BK = 32;  // filter taps (c,r,s) per tile
static_assert(BK == BN && BK == BM, "each thread loads one element of both tiles");

__global__ void __launch_bounds__(BM* BN)
    conv2d_shared_tiling(ConvShape shape, int blocks_m,
                         const float* __restrict__ input,    // [N,C,H,W]
                         const float* __restrict__ filters,  // [K,C,R,S]
                         float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ __align__(16) float w_tile[BM][BK];
  __shared__ float x_tile[BK][BN];
  const int tx = threadIdx.x, ty = threadIdx.y, CRS = shape.CRS();
  const int k = blockIdx.x % blocks_m * BM + ty;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), shape.Q());
  const Pixel out = pixels[tx];
  const bool exists = out.n < shape.N;
  const int h0 = exists ? out.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = out.q * shape.stride_w - shape.pad_w;
  const float* image = input + (exists ? out.n * int64_t{shape.CHW()} : 0);
  const float* filter = filters + k * int64_t{CRS};

  // The thread loads the taps ty, ty + BK, ty + 2 BK, ... of its pixel. As (c,r,s) they are found
  // by additions with carry, since divisions are slow.
  const int step_s = BK % shape.S, step_r = BK / shape.S % shape.R, step_c = BK / shape.S / shape.R;
  int s = ty % shape.S, r = ty / shape.S % shape.R, c = ty / shape.S / shape.R;
  float sum = 0.0f;
  for (int crs = 0; crs < CRS; crs += BK) {
    const float w = k < shape.K && crs + tx < CRS ? filter[crs + tx] : 0.0f;
    const int h = h0 + r * shape.dil_h, iw = w0 + s * shape.dil_w;
    const bool inside = within(h, shape.H) && within(iw, shape.W) && c < shape.C;
    const float x = inside ? image[(c * shape.H + h) * shape.W + iw] : 0.0f;
    s += step_s, r += step_r, c += step_c;
    if (s >= shape.S) s -= shape.S, ++r;
    if (r >= shape.R) r -= shape.R, ++c;
    __syncthreads();  // the tiles before are read to the end
    w_tile[ty][tx] = w;
    x_tile[ty][tx] = x;
    __syncthreads();  // these tiles are complete
    // In halves: the last tile is often less than half full.
    for (int half = 0; half < BK && crs + half < CRS; half += BK / 2) {
      UNROLL for (int i = half; i < half + BK / 2; i += 4) {
        const float4 a = vec4(&w_tile[ty][i]);  // the same for the warp
        sum += a.x * x_tile[i][tx];
        sum += a.y * x_tile[i + 1][tx];
        sum += a.z * x_tile[i + 2][tx];
        sum += a.w * x_tile[i + 3][tx];
      }
    }
  }
  if (exists && k < shape.K) {
    output[(int64_t{out.n} * shape.K + k) * shape.PQ() + out.p * shape.Q() + out.q] = sum;
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  launch(conv2d_shared_tiling, grid_x(blocks_m * blocks_n), dim3(BN, BM), stream, shape, blocks_m,
         conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"03_shared_tiling", "tiles in shared memory, one output per thread",
                           enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
