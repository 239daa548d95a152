// Probe, not a stage: one channel a group (16_depthwise). A block copies the inputs of whole planes, or of a strip of rows, which lie one
// behind the other in memory, with 16-byte asynchronous copies; a thread slides V outputs down a column, filters in registers.
// H200, cold, ms (best of blocks of 64 or 128 threads, 2048 to 6400 floats, V 7 or 14; cudaMemcpy of as many bytes; cuDNN's best, NCHW FP32):
//   mobilenet_dw1_b64 0.067 (copy 0.052, cuDNN 0.219)     mobilenet_dw7_b64 0.026 (0.017)
//   mobilenet_v2_4_dw_s2_b64 0.045                          efficientnet_b0_4_dw_s2_b64 0.054 (cuDNN 0.171)
//   efficientnet_b0_6_dw_b64 0.038 (0.021)                  xception_middle_dw_b32 0.034 (0.024, cuDNN 0.079)
//   convnext_t_stage1_dw_b64 0.099 (0.041, cuDNN 0.730)     convnext_t_stage4_dw_b64 0.025 (0.009)
// With 64-bit divisions for each output column the same took 1.3 to 1.5 times as long. Right on all (error 2.1 to 3.7 x 2^-24 sum|xw|).
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
struct Shape { int N, G, M, H, W, R, S, sh, sw, ph, pw; __host__ __device__ int P() const { return (H + 2 * ph - R) / sh + 1; } __host__ __device__ int Q() const { return (W + 2 * pw - S) / sw + 1; } };
constexpr int THREADS = 128, FLOATS = 4096;
__device__ inline bool within(int i, int n) { return (unsigned)i < (unsigned)n; }
template <int R, int S, int STRIDE, int V>
__global__ void __launch_bounds__(THREADS) depthwise(Shape s, int planes, int rows, int strips, const float* __restrict__ input, const float* __restrict__ filters, const float* __restrict__ bias, float* __restrict__ output, bool relu) {
  __shared__ __align__(16) float x[FLOATS + 4];
  const int P = s.P(), Q = s.Q(), HW = s.H * s.W, K = s.G * s.M;
  const int64_t first = (int64_t)(blockIdx.x / strips) * planes, all = (int64_t)s.N * K;
  const int p0 = blockIdx.x % strips * rows, count = (int)min((int64_t)planes, all - first);
  const int h0 = strips > 1 ? max(0, p0 * STRIDE - s.ph) : 0, h1 = strips > 1 ? min(s.H, (p0 + rows - 1) * STRIDE - s.ph + R) : s.H;
  const int64_t in0 = first / s.M, in1 = (first + count - 1) / s.M;
  const float* from = input + in0 * HW + h0 * s.W;
  const int length = (int)(in1 - in0) * HW + (h1 - h0) * s.W, skew = (int)((uintptr_t)from / 4 % 4);
  float* to = x + skew;  // as far from 16 bytes as the inputs are
  const int head = min((4 - skew) % 4, length), quads = (length - head) / 4;
  if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
  for (int i = threadIdx.x; i < quads; i += THREADS) __pipeline_memcpy_async(to + head + i * 4, from + head + i * 4, 16);
  for (int i = head + quads * 4 + threadIdx.x; i < length; i += THREADS) to[i] = from[i];
  __pipeline_commit();
  const int runs = (rows + V - 1) / V, work = count * runs * Q, k_first = (int)(first % K), m_first = (int)(first % s.M);
  float f[R * S], b = 0; int q, run, plane, filter;
  auto load = [&](int i) {  // filters come while the inputs are under way
    q = i % Q, run = i / Q % runs, plane = i / Q / runs, filter = (k_first + plane) % K;
#pragma unroll
    for (int j = 0; j < R * S; ++j) f[j] = __ldg(filters + filter * (R * S) + j);
    b = bias ? bias[filter] : 0.0f;
  };
  load(min((int)threadIdx.x, work - 1));
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int i = threadIdx.x; i < work;) {
    const int p = p0 + run * V, h = p * STRIDE - s.ph, w = q * STRIDE - s.pw;
    const float* at = to + (m_first + plane) / s.M * HW + (h - h0) * s.W + w;
    float sum[V] = {};
    bool column[S];
#pragma unroll
    for (int t = 0; t < S; ++t) column[t] = within(w + t, s.W);
#pragma unroll
    for (int y = 0; y < (V - 1) * STRIDE + R; ++y) {
      float v[S];
      const bool row = within(h + y, s.H) & (h + y < h1);
#pragma unroll
      for (int t = 0; t < S; ++t) v[t] = row & column[t] ? at[y * s.W + t] : 0.0f;
#pragma unroll
      for (int r = 0; r < R; ++r) if ((y - r) % STRIDE == 0 && y >= r && (y - r) / STRIDE < V) {
#pragma unroll
        for (int t = 0; t < S; ++t) sum[(y - r) / STRIDE] += f[r * S + t] * v[t];
      }
    }
    float* out = output + ((first + plane) * P + p) * Q + q;
    const int n = min(V, min(P - p, rows - run * V));
#pragma unroll
    for (int j = 0; j < V; ++j) if (j < n) { const float y = sum[j] + b; out[j * Q] = relu && y < 0 ? 0.0f : y; }
    i += THREADS;
    if (i < work) load(i);
  }
}
template <int R, int S, int STRIDE, int V>
void run(const Shape& s, const float* x, const float* f, const float* b, float* y, bool relu) {
  const int HW = s.H * s.W, P = s.P();
  int planes = 1, rows = P, strips = 1;
  if (HW * 2 <= FLOATS) planes = FLOATS / HW;
  else if (HW > FLOATS) {
    rows = std::max(1, ((FLOATS / s.W - R) / STRIDE + 1) / V * V), strips = (P + rows - 1) / rows;
    rows = ((P + strips - 1) / strips + V - 1) / V * V, strips = (P + rows - 1) / rows;
  }
  const int64_t blocks = ((int64_t)s.N * s.G * s.M + planes - 1) / planes * strips;
  depthwise<R, S, STRIDE, V><<<(unsigned)blocks, THREADS>>>(s, planes, rows, strips, x, f, b, y, relu);
}
