// Of four sizes the one that fits: how many filters a thread takes.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 128;  // one pixel each

// ---- your part ----
// How many filters a thread takes: 4, 8, 16 or 32.
int filters_of_a_thread(const ConvShape&) { return 32; }
// ---- end of your part ----

template <int TM>  // filters of a thread
__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int rows,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  const int k0 = blockIdx.x % rows * TM, CRS = shape.CRS();
  const Pixel at = PixelRange(int64_t{blockIdx.x / rows} * THREADS, shape)[threadIdx.x];
  if (at.n >= shape.N) return;
  const float* image = input + at.n * shape.input_pitch();
  const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;
  float sum[TM] = {};
  int crs = 0;
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      for (int s = 0; s < shape.S; ++s, ++crs) {
        const int h = h0 + r * shape.dil_h, w = w0 + s * shape.dil_w;
        const bool inside = within(h, shape.H) && within(w, shape.W);
        const float x = inside ? image[(c * shape.H + h) * shape.W + w] : 0.0f;
        UNROLL for (int m = 0; m < TM; ++m) {  // behind the last filter: the last, for nothing
          sum[m] += filters[min(k0 + m, shape.K - 1) * CRS + crs] * x;
        }
      }
    }
  }
  UNROLL for (int m = 0; m < TM; ++m) {
    if (k0 + m < shape.K) output[offset(at, k0 + m, shape)] = sum[m];
  }
}

template <int TM>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int rows = static_cast<int>(ceil_div(shape.K, TM));
  const int64_t columns = ceil_div(int64_t{shape.N} * shape.PQ(), THREADS);
  conv2d<TM><<<grid_x(rows * columns), THREADS, 0, stream>>>(shape, rows, conv.input, conv.filters,
                                                             conv.output);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  switch (filters_of_a_thread(conv.shape)) {
    case 4:
      enqueue_tiles<4>(conv, stream);
      break;
    case 8:
      enqueue_tiles<8>(conv, stream);
      break;
    case 16:
      enqueue_tiles<16>(conv, stream);
      break;
    case 32:
      enqueue_tiles<32>(conv, stream);
      break;
    default:
      throw InvalidArgument("a thread takes 4, 8, 16 or 32 filters");
  }
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"tile_choice", "tiles that the filters fill", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
