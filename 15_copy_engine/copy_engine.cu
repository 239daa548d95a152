// Stage 15: stage 14 with tiles of pixels fetched by the copy engine: one thread asks.
//
// A kernel writes the input channels last before. Then a tile is one tap of 32 channels of 128 windows, and
// one instruction fetches it, with zeros for the padding, in the order that keeps banks apart. Where
// channels are few, a filter row's taps become channels.
// Should drop: the time, and instructions: no thread copies. Rises: the bytes moved, by the first kernel.
// What hurts: that kernel, where there is little to multiply.
#include "common/core/add_parts.h"
#include "common/core/channels_last.h"
#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/pack.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BN = 128;       // output pixels (any of the N·P·Q) per block
constexpr int BK = View::BK;  // channels of one tap per tile
constexpr int MULTIPLYING = 2 * BN, THREADS = MULTIPLYING + 128;  // one of these 128 copies

template <int BM, bool THREE>  // filters per block; whether a product takes three
struct Tiles {
  static constexpr int W = (THREE ? 2 : 1) * BM * BK;  // so many values of the filters
  float w[W], x[BN * BK];
};

// As many as have room for their sums in registers: one block's epilogue takes place beside another's loop.
template <int TM, bool THREE>
constexpr int BLOCKS = TM == 4                  ? 3
                       : TM <= (THREE ? 8 : 12) ? 2
                                                : 1;

// Tiles in the shared memory of a block: one is read, the others filled.
template <int TM, bool THREE>
constexpr int SLOTS = 225 * 1024 / BLOCKS<TM, THREE> / sizeof(Tiles<8 * TM, THREE>);

template <int TM, bool THREE, bool PLANES>  // an eighth of the block's filters; how the input lies
__global__ void __launch_bounds__(THREADS, BLOCKS<TM, THREE>)
    conv2d_copy_engine(View view,
                       const __grid_constant__ CUtensorMap map,  // of the input
                       const __grid_constant__ CUtensorMap filters,
                       const float* __restrict__ input,   // channels last, or PLANES as they lie
                       const float* __restrict__ packed,  // [rows][all tiles][W]; null: as they lie
                       const float* __restrict__ bias,    // [K], or null
                       float* __restrict__ output,        // [N,K,P,Q], or [parts][N,K,P,Q]
                       bool relu) {
  constexpr int BM = 8 * TM, COUNT = SLOTS<TM, THREE>;
  using Tile = Tiles<BM, THREE>;
  extern __shared__ __align__(1024) char dynamic[];
  Tile* const slots = reinterpret_cast<Tile*>(dynamic);  // [COUNT]
  __shared__ Barrier full[COUNT], empty[COUNT];
  const ConvShape& shape = view.shape;
  const int tid = threadIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int all = view.tiles, first = all / parts * part + min(part, all % parts);
  const int tiles = all / parts + (part < all % parts);
  const Block block(blockIdx.x, shape, BM);
  const int plane = PLANES ? round_up(view.PQ, BN) : view.PQ;  // of one row
  const PixelRange pixels(int64_t{block.column} * BN, plane, PLANES ? plane : view.Q);
  if (packed) packed += (int64_t{block.row} * all + first) * Tile::W;
  if (tid == 0) {
    for (Barrier& barrier : full) init_barrier(&barrier, 1);
    for (Barrier& barrier : empty) init_barrier(&barrier, MULTIPLYING / 32);
    start_barriers();
  }
  wait_for_kernel_before();
  __syncthreads();  // the barriers are ready

  if (tid >= MULTIPLYING) {
    give_registers<24>();
    if (tid > MULTIPLYING) return;
    // What is loaded of x: of 128 windows in a row one tap's channels.
    const Pixel at = pixels[0];
    const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;
    const int channel = view.together ? block.group * shape.C : 0;
    const int image = (view.together ? 0 : block.group * shape.N) + at.n;
    for (int tile = 0; tile < tiles; ++tile) {
      const int i = tile % COUNT, c = (first + tile) % view.chunks * BK;
      const int rs = (first + tile) / view.chunks, r = rs / shape.S, s = rs % shape.S;
      wait(&empty[i], tile / COUNT % 2 ^ 1);  // the tile that was there is read to the end
      arrive_and_expect(&full[i], sizeof(Tile));
      if (THREE || packed) {
        copy_bulk(slots[i].w, packed + int64_t{tile} * Tile::W, sizeof(slots[i].w), &full[i]);
      } else {
        copy_windows(slots[i].w, &filters, c, 0, 0, block.k0, s, r, &full[i]);
      }
      UNROLL for (int p = 0; p < BN && PLANES; p += 32) {  // a channel's pixels in a row
        copy_windows(slots[i].x + p * BK, &map, at.q + p, channel + c, 0, image, 0, 0, &full[i]);
      }
      if (PLANES) continue;
      copy_windows(slots[i].x, &map, channel + c, w0, h0, image, s * shape.dil_w, r * shape.dil_h,
                   &full[i]);
    }
    return;
  }

  // A warp multiplies 16 pixels by all filters. A thread has two pixels, 8 apart. One chain of products takes
  // a tile's channels, or half of them, where registers are for several blocks.
  constexpr bool LOADS = THREE || PLANES;  // or the tensor cores read the pixels, too
  constexpr int SHARING = BLOCKS<TM, THREE>, CHAIN = LOADS && SHARING > 1 ? BK / 2 : BK;
  take_registers<SHARING == 3 ? 72 : SHARING == 2 ? 104 : 240>();
  const int t = tid % 4, row = tid / 32 * 16 + tid % 32 / 4;
  // Where pixel `row` of channel t lies. Others lie an exclusive or away, and in rows below. The shuffle keeps
  // this number: the compiler would compute it again for each chain.
  const int at = __shfl_sync(
      ~0u, PLANES ? row / 32 * 32 * BK + swizzled(t, row % 32) : swizzled(row, t), tid % 32);
  float sum[BM / 2] = {}, whole[CHAIN / 2];
  const auto read = [&](int i, int k0) {
    UNROLL for (int e = 0; e < CHAIN / 2 && LOADS; ++e) {
      const int c = k0 + e / 2 * 4, pixel = e % 2 * 8;
      whole[e] = slots[i].x[PLANES ? (at ^ (c % 8 * 4 + pixel)) + c * 32 : (at ^ c) + pixel * BK];
    }
  };
  const uint64_t first_w = descriptor(slots->w);
  const uint64_t first_rows = descriptor(slots->x + tid / 128 * 64 * BK);  // the warpgroup's
  if (tiles > 0) wait(&full[0], 0), read(0, 0);
  for (int tile = 0, i = 0, parity = 0, chunk = first % view.chunks; tile < tiles; ++tile) {
    const int next = i + 1 < COUNT ? i + 1 : 0, left = shape.C - chunk * BK;  // channels
    parity ^= next == 0;
    UNROLL for (int k0 = 0; k0 < BK; k0 += CHAIN) {
      if (k0 > 0 && k0 >= left) break;
      float x[CHAIN / 2], x_low[CHAIN / 2];
      UNROLL for (int e = 0; e < CHAIN / 2 && LOADS; ++e) {
        x[e] = to_tf32(whole[e]);
        if (THREE) x_low[e] = rest_in_tf32<true>(whole[e], x[e]);
      }
      const int further = (i * sizeof(Tile) + k0 * sizeof(float)) / 16;
      const uint64_t w = first_w + further, w_low = w + BM * BK * sizeof(float) / 16;
      const uint64_t rows = first_rows + further;
      float d[THREE ? BM / 2 : 1];
      const auto products = [&](auto steps) {
        constexpr int STEPS = decltype(steps)::value;
        products_begin();
        if constexpr (THREE) {  // the smallest first
          UNROLL for (int k = 0; k < STEPS; ++k) multiply<BM>(d, x_low + 4 * k, w + 2 * k, k > 0);
          UNROLL for (int k = 0; k < STEPS; ++k) multiply<BM>(d, x + 4 * k, w_low + 2 * k, 1);
          UNROLL for (int k = 0; k < STEPS; ++k) multiply<BM>(d, x + 4 * k, w + 2 * k, 1);
        } else if constexpr (PLANES) {
          UNROLL for (int k = 0; k < STEPS; ++k) multiply<BM>(sum, x + 4 * k, w + 2 * k, 1);
        } else {
          UNROLL for (int k = 0; k < STEPS; ++k) multiply<BM>(sum, rows + 2 * k, w + 2 * k, 1);
        }
        products_commit();
      };
      if (CHAIN == BK && left <= BK / 2) {
        products(std::integral_constant<int, BK / 16>());
      } else {
        products(std::integral_constant<int, CHAIN / 8>());
      }
      if (!LOADS) products_wait<1>();  // those of the tile before
      if (!LOADS && tile > 0 && tid % 32 == 0) arrive(&empty[(i > 0 ? i : COUNT) - 1]);
      const bool last = k0 + CHAIN >= BK || left <= k0 + CHAIN;  // of the tile
      if (last && tile + 1 < tiles) wait(&full[next], parity);
      if (!last) read(i, k0 + CHAIN);  // while products are made
      if (last && tile + 1 < tiles) read(next, 0);
      if constexpr (LOADS) {
        products_wait(sum, d);
        if (last) fence_async_proxy();  // this lane has read all of slot i
        __syncwarp();
        if (last && tid % 32 == 0) arrive(&empty[i]);
        if constexpr (THREE) {
          UNROLL for (int j = 0; j < BM / 2; ++j) sum[j] += d[j];
        }
      }
    }
    i = next, chunk = chunk + 1 < view.chunks ? chunk + 1 : 0;
  }
  products_wait(sum);

  bool again = false;
  if (view.mixed) UNROLL for (int j = 0; j < BM / 2; ++j) again |= isnan(sum[j]);
  // Partial sums lie like the output, part by part. The first has the bias; ReLU comes when all are added.
  if (parts > 1) output += part * shape.output_count(), relu = 0, bias = part ? nullptr : bias;
  // The thread's filters are k, k + 1, k + 8, k + 9, and so on.
  const int k = block.k0 + t * 2, step = view.layout == NHWC ? 1 : view.PQ;
  const Pixel out[2] = {pixels[row], pixels[row + 8]};
  float* const to[2] = {output + view.offset(out[0], k), output + view.offset(out[1], k)};
  int filters_left[2];
  UNROLL for (int e = 0; e < 2; ++e) {
    const bool is_pixel = out[e].n < shape.N && (!PLANES || out[e].q < shape.W);
    filters_left[e] = is_pixel ? block.k_end - k : 0;
  }
  float b[BM / 4];  // read together, since each takes its time
  UNROLL for (int j = 0; j < BM / 4; ++j) {
    const int m = j / 2 * 8 + j % 2;
    b[j] = bias && k + m < block.k_end ? bias[k + m] : 0.0f;
  }
  // Two filters at a time, where they are neighbours: then a warp writes whole sectors.
  const bool pairs =
      step == 1 && shape.K % 2 == 0 && reinterpret_cast<std::uintptr_t>(output) % 8 == 0;
  UNROLL for (int j = 0; j < BM / 2; ++j) {
    const int m = j / 4 * 8 + j % 2, e = j / 2 % 2;
    sum[j] += b[j / 4 * 2 + j % 2];
    if (relu && sum[j] < 0.0f) sum[j] = 0.0f;  // false for NaN, which stays
    if (!pairs && m < filters_left[e]) to[e][m * step] = sum[j];
  }
  UNROLL for (int j = 0; j < BM / 2 && pairs; j += 2) {
    const int m = j / 4 * 8, e = j / 2 % 2;
    if (m < filters_left[e]) vec2(to[e] + m) = make_float2(sum[j], sum[j + 1]);
  }
  for (int j = 0; j < BM / 2 && again; ++j) {  // where NaN, which may be others'
    const int m = j / 4 * 8 + j % 2;
    const Pixel at = j / 2 % 2 ? out[1] : out[0];
    float* const y = (j / 2 % 2 ? to[1] : to[0]) + m * step;
    if (m >= (j / 2 % 2 ? filters_left[1] : filters_left[0]) || !isnan(*y)) continue;
    *y = own_sum<THREE>(view, input, at, k + m, t * 2 + m, packed, Tile::W, first, tiles, bias,
                        relu);
  }
}

template <bool THREE>
constexpr TileSizes SIZES = {4, BK, 64, THREE ? 2 : 1, COPY_ENGINE_COSTS[THREE], THREE ? 20 : 32};

template <bool THREE, Layout LAYOUT = NCHW>
std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  const Images images = images_for(shape, LAYOUT, limit, SIZES<THREE>);
  return images.input_bytes + images.plan.bytes;
}

template <bool THREE, int TM = 4>
void enqueue_tiles(const Convolution& conv, const View& view, const Plan& plan, float* turned,
                   cudaStream_t stream) {
  if constexpr (TM < SIZES<THREE>.most_TM) {
    if (plan.TM > TM) return enqueue_tiles<THREE, TM + 4>(conv, view, plan, turned, stream);
  }
  constexpr int BM = 8 * TM, BYTES = SLOTS<TM, THREE> * sizeof(Tiles<BM, THREE>);
  const Packed to = plan.packed(conv, BK);
  using Order = std::conditional_t<THREE, CutSwizzled, RoundedSwizzled>;
  const bool packs = THREE || !view.takes_filters(conv.filters);
  enqueue_prepare<BM, Order>(view, packs ? conv.filters : nullptr, to.filters, conv.input, turned,
                             stream);
  const float* const input = view.as_it_lies ? conv.input : turned;
  const CUtensorMap map = view.map(input, BN, !THREE);
  const int strip = view.planes ? BN : 1;  // a block's pixels are of one plane
  const dim3 grid(tile_grid(view.shape, BM, BN, strip), plan.parts);
  auto* const kernel =
      view.planes ? conv2d_copy_engine<TM, THREE, true> : conv2d_copy_engine<TM, THREE, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  launch_early(kernel, grid, THREADS, BYTES, stream, view, map,
               packs ? map : view.filter_map(conv.filters, BM), input, packs ? to.filters : nullptr,
               conv.bias, plan.output(conv), conv.relu);
  add_parts(plan.parts, conv, stream);
}

template <bool THREE, Layout LAYOUT = NCHW>
void enqueue(const Convolution& conv, cudaStream_t stream) {
  const Images images = images_for(conv.shape, LAYOUT, conv.workspace_bytes, SIZES<THREE>);
  tile_grid(conv.shape, 8 * images.plan.TM,
            BN);  // before the first kernel, whether there are too many
  for (int n = 0; n < conv.shape.N; n += images.shape.N) {
    ConvShape given = images.shape;
    given.N = std::min(given.N, conv.shape.N - n);
    Convolution some = conv;
    some.input += n * given.input_pitch(), some.output += n * given.output_pitch();
    const View view(given, LAYOUT, some.input);
    float* const turned = static_cast<float*>(conv.workspace);
    some.shape = view.padded();
    some.workspace = turned + images.input_bytes / sizeof(float);
    enqueue_tiles<THREE>(some, view, images.plan, turned, stream);
  }
}

CONVLADDER_REGISTER_STAGE({"15_copy_engine", "tiles fetched by the copy engine", enqueue<true>,
                           workspace<true>, true, FP32, true, 90});
CONVLADDER_REGISTER_STAGE({"15_copy_engine_nhwc", "the same, channels last", enqueue<true, NHWC>,
                           workspace<true, NHWC>, true, FP32, true, 90, NHWC});
CONVLADDER_REGISTER_STAGE({"15_copy_engine_tf32", "the same, one product in TF32", enqueue<false>,
                           workspace<false>, true, TF32, true, 90});
CONVLADDER_REGISTER_STAGE({"15_copy_engine_tf32_nhwc", "the same in TF32, channels last",
                           enqueue<false, NHWC>, workspace<false, NHWC>, true, TF32, true, 90,
                           NHWC});

}  // namespace
}  // namespace convladder
