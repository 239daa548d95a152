// Stage 09: stage 08, with tiles of three sizes, of which the problem's filters choose one.
//
// A tile's rows of filters that do not exist are multiplied all the same: of 96 rows, 64 filters leave
// a third empty. So TM is compiled as 8, 12 and 16. The largest of those that leave the fewest rows
// empty is taken: it multiplies the most per value that it reads.
// Should drop: multiplications by nothing; wavefronts of shared memory per multiplication, where 128
// fit. What 96 fit stays as it was.
// What hurts: a copy of 4 bytes for each tap of each pixel, though neighbouring taps want nearly the
// same pixels. Stage 10 copies those once.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TN = 8, BN = 16 * TN;  // output pixels (any of the N·P·Q) per thread and block
constexpr int BK = 8;                // filter taps (c,r,s) per tile
constexpr int SLOTS = 3;             // tiles in shared memory: one is read, the others filled
constexpr int THREADS = 8 * (BN / TN);
constexpr int STEP = THREADS / BN;  // from a tap that a thread loads to its next

template <int BM>  // filters per block
struct Tiles {
  float w[BK][BM], x[BK][BN];
};

// One block: 32 filters x 32 taps, turned in shared memory, so that warps read and write neighbours.
template <int BM>
__global__ void pack(ConvShape shape, int blocks_k, int padded_CRS,
                     const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed,         // [blocks_m][padded_CRS][BM]
                     Tap* __restrict__ taps) {           // [padded_CRS + ...]
  __shared__ float turned[32][32 + 1];
  const int tx = threadIdx.x, ty = threadIdx.y, CRS = shape.CRS();
  const int k0 = blockIdx.x % blocks_k * 32, crs0 = blockIdx.x / blocks_k * 32;
  const bool inside = k0 + ty < shape.K && crs0 + tx < CRS;
  turned[tx][ty] = inside ? filters[(k0 + ty) * CRS + crs0 + tx] : 0.0f;
  __syncthreads();  // written along one axis, read along the other
  const int k = k0 + tx, crs = crs0 + ty;
  const int64_t row = int64_t{k / BM} * padded_CRS + crs;
  if (crs < padded_CRS) packed[row * BM + k % BM] = turned[ty][tx];
  if (k == 0) taps[crs] = tap_at(crs, shape);
}

template <int TM>  // filters per thread
__global__ void __launch_bounds__(THREADS, TM == 8 ? 4 : 3)
    conv2d_tiled(ConvShape shape, int blocks_m,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [blocks_m][tiles * BK][BM]
                 const Tap* __restrict__ taps,      // [(tiles + SLOTS - 1) * BK]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q]
                 bool relu) {
  constexpr int BM = 8 * TM;
  using Tile = Tiles<BM>;
  __shared__ __align__(16) Tile slots[SLOTS];
  __shared__ __align__(16) float panel[BM / TM][BN];
  const int tid = threadIdx.x, tiles = (shape.CRS() + BK - 1) / BK;
  const int k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), shape.Q());

  // What this thread loads of x: every STEP-th tap of one pixel.
  const int row = tid / BN, col = tid % BN;
  const Pixel at = pixels[col];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += int64_t{k0} * tiles * BK + tid * 4;

  const int tx = tid % (BN / TN), ty = tid / (BN / TN);
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < tiles;
    UNROLL for (int i = 0; i < BM * BK; i += THREADS * 4) {
      if (i + tid * 4 < BM * BK) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    UNROLL for (int i = 0; i < BK; i += STEP) {
      const Tap tap = taps[i + row];
      const bool inside = within(h0 + tap.h, shape.H) & within(w0 + tap.w, shape.W);
      copy_async<4>(&slot->x[i + row][col], corner + tap.offset, inside);
    }
    packed += BM * BK, taps += BK;
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

  const int k1 = k0 + ty * TM;
  UNROLL for (int m = 0; m < TM; ++m) {
    const float b = bias && k1 + m < shape.K ? bias[k1 + m] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  }
  const Pixel out = pixels[tid];
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    UNROLL for (int j = 0; j < TN; j += 4) vec4(&panel[ty][tx * 4 + j * (BN / 8)]) =
        vec4(&sum[m][j]);
    __syncthreads();  // this panel is complete
    float* to = output + offset(out, k0 + m, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += TM * PQ) {
      const bool exists = (out.n < shape.N) & (k0 + i * TM + m < shape.K);
      if (exists) *to = panel[i][tid];
    }
  }
}

constexpr int AHEAD = 96;  // at least the taps by which CRS is rounded up, and looked ahead to

std::size_t workspace(const ConvShape& shape, std::size_t) {
  return ((shape.K + std::size_t{128}) * sizeof(float) + sizeof(Tap)) * (shape.CRS() + AHEAD);
}

template <int TM>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  constexpr int BM = 8 * TM;
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int padded_CRS = round_up(shape.CRS(), BK), blocks_k = blocks_m * (BM / 32);
  float* packed = static_cast<float*>(conv.workspace);
  Tap* taps = reinterpret_cast<Tap*>(packed + int64_t{blocks_m} * BM * padded_CRS);
  const int64_t blocks = ceil_div(padded_CRS + (SLOTS - 1) * BK, 32) * blocks_k;
  launch(pack<BM>, grid_x(blocks), dim3(32, 32), stream, shape, blocks_k, padded_CRS, conv.filters,
         packed, taps);
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  launch(conv2d_tiled<TM>, grid_x(blocks_m * blocks_n), THREADS, stream, shape, blocks_m,
         conv.input, packed, taps, conv.bias, conv.output, conv.relu);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const int K = conv.shape.K, by_64 = round_up(K, 64), by_96 = round_up(K, 96);
  if (round_up(K, 128) <= min(by_64, by_96)) return enqueue_tiles<16>(conv, stream);
  if (by_96 <= by_64) return enqueue_tiles<12>(conv, stream);
  enqueue_tiles<8>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"09_tile_sizes", "tiles that the filters fill", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
