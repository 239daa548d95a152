// Stage 12: stage 11, with products by the tensor cores, which read 11 bits of a factor: TF32.
//
// A warp multiplies 16 filters x 8 taps by 8 taps x 8 pixels in one instruction. Inputs come tap by tap
// again, as in stage 09: rows gain 3 % here.
// Should drop: instructions and reads of shared memory per multiplication, and the time.
// What hurts: of a factor's 24 bits 11 are left. Stage 13 gives FP32's accuracy back.
#include "common/core/add_parts.h"
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/pack.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TN = 8, BN = 16 * TN;  // output pixels (any of the N·P·Q) per thread and block
constexpr int RUN = 2;               // filters of a thread that are neighbours, as in one read
constexpr int BK = 16;               // filter taps (c,r,s) per tile
constexpr int SLOTS = 2;             // tiles in shared memory: one is read, the others filled
constexpr int THREADS = 8 * (BN / TN);

template <int BM>  // filters per block
struct Tiles {
  static constexpr int W = BM * BK;        // so many values of the filters
  float w[BK / 4][4 * BM], x[BK][BN + 8];  // four taps lie in banks of their own
  Tap taps[BK];  // of the tile whose inputs are copied while this one is multiplied
};

// As many as have room for TM x TN sums in each thread's registers.
constexpr int blocks_per_sm(int TM) { return TM <= 8 ? 4 : TM == 12 ? 3 : 2; }

template <int TM>  // filters per thread
__global__ void __launch_bounds__(THREADS, blocks_per_sm(TM))
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [rows][all tiles][W]
                 const Tap* __restrict__ taps,      // [all * BK + ...]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q], or [parts][N,K,P,Q]
                 bool relu) {
  constexpr int BM = 8 * TM;
  using Tile = Tiles<BM>;
  __shared__ __align__(16) Tile slots[SLOTS];
  __shared__ __align__(16) float panel[BM / TM][BN + 8];
  const int tid = threadIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int all = (shape.CRS() + BK - 1) / BK, first = all / parts * part + min(part, all % parts);
  const int end = first + all / parts + (part < all % parts);
  const Block block(blockIdx.x, shape, BM);
  const PixelRange pixels(int64_t{block.column} * BN, shape);

  // What this thread loads of x: all taps of one pixel.
  const Pixel at = pixels[tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  input += block.group * shape.CHW();
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += (int64_t{block.row} * all + first) * Tile::W + tid * 4;
  if (tid < (SLOTS - 1) * BK)
    slots[1 + tid / BK].taps[tid % BK] = taps[first * BK + tid];  // of the first tiles

  // A warp multiplies all 8 rows of filters by 32 pixels, from n0 on.
  const int t = tid % 4, ty = tid % 32 / 4, n0 = tid / 32 * 32;
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = first + 1 - SLOTS; tile < end; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < end;
    Tile* const next = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // the oldest tile
    Tap tap[BK];  // 8 of them first: none is read while copies begin
    UNROLL for (int i = 0; i < BK; ++i) {
      UNROLL for (int l = i; l < i + 8 && i % 8 == 0; ++l) tap[l] = next->taps[l];
      const bool inside = within(h0 + tap[i].h, shape.H) & within(w0 + tap[i].w, shape.W);
      copy_async<4>(&slot->x[i][tid], corner + tap[i].offset, inside);
    }
    UNROLL for (int i = 0; i < Tile::W; i += THREADS * 4) {
      if (i + tid * 4 < Tile::W) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    if (tid < BK) copy_async<16>(&slot->taps[tid], &taps[(tile + 2 * SLOTS - 2) * BK + tid]);
    packed += Tile::W;
    __pipeline_commit();
    slot = next;
    if (tile < first) continue;
    UNROLL_BY(1) for (int i = 0; i < BK; i += 8) {  // registers are short
      float x[8];
      UNROLL for (int j = 0; j < 8; ++j) {
        x[j] = to_tf32(slot->x[i + j % 2 * 4 + t][n0 + j / 2 * 8 + ty]);
      }
      UNROLL for (int m = 0; m < TM; m += RUN) {
        const float* from = slot->w[i / 4] + (m + ty / 4) * 32 + t * 8 + ty % 4 * RUN;
        const float2 w[2] = {vec2(from), vec2(from + 4 * BM)};
        UNROLL for (int j = 0; j < TN; j += 2) mma_tf32(sum[m] + j, sum[m + 1] + j, &w->x, x + j);
      }
    }
  }
  __pipeline_wait_prior(0);  // no copy is left under way when the block ends

  // Partial sums lie like the output, part by part. The first has the bias; ReLU comes when all are added.
  if (parts > 1) output += part * shape.output_count(), relu = 0, bias = part ? nullptr : bias;
  UNROLL for (int m = 0; m < TM; ++m) {
    const int k = block.k0 + m / RUN * RUN * 8 + ty * RUN + m % RUN;
    const float b = bias && k < block.k_end ? bias[k] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  }
  const Pixel out = pixels[tid];
  const bool is_output = out.n < shape.N;
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < TM; ++m) {
    __syncwarp();  // the panel before is read to the end, of which a warp has columns of its own
    UNROLL for (int j = 0; j < TN; j += 2) vec2(&panel[ty][n0 + j * 4 + t * 2]) = vec2(&sum[m][j]);
    __syncwarp();  // this panel is complete
    const int k = block.k0 + m / RUN * RUN * 8 + m % RUN;
    float* to = output + offset(out, k, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += RUN * PQ) {
      if (is_output & (k + i * RUN < block.k_end)) *to = panel[i][tid];
    }
  }
}

constexpr TileSizes SIZES = {4, BK, 64, 1, TF32_COSTS};

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  return best_plan(shape, limit, SIZES).bytes;
}

template <int TM>
void enqueue_tiles(const Convolution& conv, const Plan& plan, cudaStream_t stream) {
  constexpr int BM = 8 * TM;
  const ConvShape& shape = conv.shape;
  const Packed to = plan.packed(conv, BK);
  pack<BM, Rounded><<<to.blocks, dim3(32, 32), 0, stream>>>(shape, conv.filters, to);
  const dim3 grid(tile_grid(shape, BM, BN), plan.parts);
  conv2d_tiled<TM><<<grid, THREADS, 0, stream>>>(shape, conv.input, to.filters, to.taps, conv.bias,
                                                 plan.output(conv), conv.relu);
  add_parts(plan.parts, conv, stream);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const Plan plan = best_plan(conv.shape, conv.workspace_bytes, SIZES);
  if (plan.TM == 16) return enqueue_tiles<16>(conv, plan, stream);
  if (plan.TM == 12) return enqueue_tiles<12>(conv, plan, stream);
  if (plan.TM == 4) return enqueue_tiles<4>(conv, plan, stream);
  enqueue_tiles<8>(conv, plan, stream);
}

CONVLADDER_REGISTER_STAGE({"12_tensor_cores", "products in TF32", enqueue, workspace, true, TF32,
                           true, 80});

}  // namespace
}  // namespace convladder
