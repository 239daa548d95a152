// Windows fetched by the copy engine: a tensor map in im2col mode says where they lie.
#include "common/core/add_bias.h"
#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/core/tensor_map.h"

namespace convladder {
namespace {

constexpr int BM = 8, BN = 128, BK = 32;  // filters, output pixels, and channels of one tap
constexpr int THREADS = BN;               // one pixel each

// Channels of a pixel in memory, a multiple of 4: the copy engine wants 16 bytes from pixel to pixel.
__host__ __device__ int pitch_of(const ConvShape& shape) { return round_up(shape.C, 4); }

// The input channels last, one thread a value.
__global__ void channels_last(ConvShape shape, const float* __restrict__ input,  // [N,C,H,W]
                              float* __restrict__ to) {                          // [N,H,W,pitch]
  const int pitch = pitch_of(shape), plane = shape.H * shape.W;
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i >= int64_t{shape.N} * plane * pitch) return;
  const int64_t pixel = i / pitch, n = pixel / plane;
  const int c = static_cast<int>(i % pitch);
  to[i] = c < shape.C ? input[(n * shape.C + c) * plane + pixel % plane] : 0.0f;
}

__global__ void __launch_bounds__(THREADS)
    conv2d(ConvShape shape, int blocks_m, const __grid_constant__ CUtensorMap map,
           const float* __restrict__ input,     // [N,H,W,pitch]
           const float* __restrict__ filters,   // [K,C,R,S]
           float* __restrict__ output) {        // [N,K,P,Q]
  __shared__ __align__(1024) float x[BN * BK];  // number c of pixel i at swizzled(i, c)
  __shared__ __align__(16) float w[BM][BK];
  __shared__ Barrier full;
  const int k0 = blockIdx.x % blocks_m * BM, tid = threadIdx.x, taps = shape.R * shape.S;
  const int pitch = pitch_of(shape), tiles = (shape.C + BK - 1) / BK * taps;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const Pixel first = pixels[0], at = pixels[tid];
  if (tid == 0) init_barrier(&full, 1), start_barriers();
  __syncthreads();  // the barrier is ready

  float sum[BM] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int c0 = tile / taps * BK, r = tile % taps / shape.S, s = tile % shape.S;
    for (int i = tid; i < BM * BK; i += THREADS) {
      const int k = k0 + i / BK, c = c0 + i % BK;
      const bool inside = k < shape.K && c < shape.C;
      w[i / BK][i % BK] = inside ? filters[(k * shape.C + c) * taps + tile % taps] : 0.0f;
    }
    // ---- your part ----
    // Each thread copies 32 channels of its own pixel's tap; zeros where there is padding, or no channel.
    const int h = at.p * shape.stride_h - shape.pad_h + r * shape.dil_h;
    const int column = at.q * shape.stride_w - shape.pad_w + s * shape.dil_w;
    const bool inside = at.n < shape.N && within(h, shape.H) && within(column, shape.W);
    const float* from = input + ((int64_t{at.n} * shape.H + h) * shape.W + column) * pitch + c0;
    for (int c = 0; c < BK; ++c) {
      x[swizzled(tid, c)] = inside && c0 + c < shape.C ? from[c] : 0.0f;
    }
    (void)map, (void)first;  // not used yet
    // ---- end of your part ----
    __syncthreads();  // the tiles are complete
    for (int c = 0; c < BK; c += 4) {
      const float4 v = vec4(&x[swizzled(tid, c)]);
      UNROLL for (int m = 0; m < BM; ++m) {
        const float4 f = vec4(&w[m][c]);
        sum[m] += f.x * v.x + f.y * v.y + f.z * v.z + f.w * v.w;
      }
    }
    fence_async_proxy();  // the copy engine will write over what this thread has read
    __syncthreads();      // the tiles are read to the end
  }
  UNROLL for (int m = 0; m < BM; ++m) {
    if (at.n < shape.N && k0 + m < shape.K) output[offset(at, k0 + m, shape)] = sum[m];
  }
}

std::size_t workspace(const ConvShape& shape, std::size_t) {
  return sizeof(float) * shape.N * shape.H * shape.W * pitch_of(shape);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int pitch = pitch_of(shape);
  float* turned = static_cast<float*>(conv.workspace);
  const int64_t values = int64_t{shape.N} * shape.H * shape.W * pitch;
  channels_last<<<grid_x(ceil_div(values, THREADS)), THREADS, 0, stream>>>(shape, conv.input,
                                                                           turned);
  // The map: where the array is, how far it is from pixel to pixel and row to row, the windows' corners and
  // strides, and a box of BN windows and BK channels. It is made by the host.
  const CUtensorMap map =
      window_map(turned, shape, shape.N, shape.C, pitch, int64_t{shape.W} * pitch, BN, BK);
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  conv2d<<<grid_x(blocks_m * blocks_n), THREADS, 0, stream>>>(shape, blocks_m, map, turned,
                                                              conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"windows", "windows by the copy engine", enqueue, workspace, false, FP32,
                           false, 90});

}  // namespace
}  // namespace convladder
