// Stage 02: the convolution as one matrix product per image, left to cuBLAS.
//
// im2col writes out, for every output pixel, the C·R·S inputs that it needs: a matrix of GEMM_K =
// C·R·S rows and P·Q columns per image, R·S/stride² times the size of the input. The filters are
// already a matrix [K, C·R·S], and their product with it lies in memory just as NKPQ wants it.
// Should drop: time, since cuBLAS computes from registers. What hurts: the matrix goes out to DRAM
// and comes back. Stage 03 never writes it.
#include <algorithm>

#include "common/core/add_bias.h"
#include "common/core/cublas.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;  // per block: neighbouring columns of the matrix
constexpr int BATCH = 3;      // values of a thread that are under way at a time
constexpr int ALIGN = 8;      // rows of the matrix are padded to whole 32-byte sectors

// One thread: the R·S inputs under one output pixel, in one channel of one image. They go to R·S
// rows of the matrix, where the neighbouring threads store the neighbouring columns.
__global__ void im2col(ConvShape shape, int Q, int first_p, int pixels, int ld, int blocks_per_row,
                       const float* __restrict__ input,  // [images,C,H,W]
                       float* __restrict__ columns) {    // [images, G, C*R*S, ld]
  const int pixel = blockIdx.x % blocks_per_row * THREADS + threadIdx.x;
  if (pixel >= pixels) return;
  const int plane = blockIdx.x / blocks_per_row;  // of the images, all groups' channels
  const int h0 = (first_p + pixel / Q) * shape.stride_h - shape.pad_h;
  const int w0 = pixel % Q * shape.stride_w - shape.pad_w;
  const float* corner = input + int64_t{plane} * shape.H * shape.W + h0 * shape.W + w0;
  float* column = columns + int64_t{plane} * shape.R * shape.S * ld + pixel;
  for (int r = 0; r < shape.R; ++r) {
    const int h = r * shape.dil_h;
    const bool h_inside = h0 + h >= 0 && h0 + h < shape.H;
    for (int s = 0; s < shape.S; s += BATCH) {
      float value[BATCH];  // read all, then write all: BATCH loads are under way at a time
      UNROLL for (int i = 0; i < BATCH; ++i) {
        const int w = min(s + i, shape.S - 1) * shape.dil_w;
        const bool inside = h_inside && w0 + w >= 0 && w0 + w < shape.W && s + i < shape.S;
        value[i] = inside ? corner[h * shape.W + w] : 0.0f;  // the product reads padding too
      }
      UNROLL for (int i = 0; i < BATCH; ++i, column += ld) {
        if (s + i == shape.S) break;
        *column = value[i];
      }
    }
  }
}

// The work is cut so that the columns of `images` images, or of `rows` output rows of one image,
// fit the workspace.
struct Chunk {
  int images, rows, ld;
  std::size_t bytes;
};

Chunk chunk_for(const ConvShape& shape, std::size_t limit) {
  const std::size_t column = sizeof(float) * shape.groups * shape.CRS();
  const auto bytes = [&](int64_t ld) { return ld * column; };
  const auto ld = [&](int64_t rows) { return ceil_div(rows * shape.Q(), ALIGN) * ALIGN; };
  const int64_t P = shape.P();
  if (bytes(ld(P)) <= limit) {
    // 65,535: a grid's z extent, along which batched products are laid out.
    const int64_t most = std::min<std::size_t>({std::size_t(shape.N), 65535, limit / bytes(ld(P))});
    const int images = static_cast<int>(ceil_div(shape.N, ceil_div(shape.N, most)));  // even chunks
    return {images, shape.P(), static_cast<int>(ld(P)), images * bytes(ld(P))};
  }
  int64_t rows = std::min(P, static_cast<int64_t>(limit / bytes(1)) / shape.Q());
  while (rows > 1 && bytes(ld(rows)) > limit) --rows;
  rows = std::max<int64_t>(rows, 1);
  return {1, static_cast<int>(rows), static_cast<int>(ld(rows)), bytes(ld(rows))};
}

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  return chunk_for(shape, limit).bytes;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const Chunk chunk = chunk_for(shape, conv.workspace_bytes);
  float* columns = static_cast<float*>(conv.workspace);
  for (int64_t n = 0; n < shape.N; n += chunk.images) {
    const int images = static_cast<int>(std::min<int64_t>(chunk.images, shape.N - n));
    for (int64_t row = 0; row < shape.P(); row += chunk.rows) {
      const int p = static_cast<int>(row), pixels = std::min(chunk.rows, shape.P() - p) * shape.Q();
      const int64_t blocks = ceil_div(pixels, THREADS);
      im2col<<<grid_x(blocks * images * shape.total_C()), THREADS, 0, stream>>>(
          shape, shape.Q(), p, pixels, chunk.ld, static_cast<int>(blocks),
          conv.input + n * shape.input_pitch(), columns);
      // Row-major out[K, PQ] = filters[K, CRS] · columns[CRS, ld] is column-major
      // out^T[PQ, K] = columns^T[ld, CRS] · filters^T[CRS, K]: no transposition, operands swapped.
      float* output = conv.output + n * shape.output_pitch() + p * shape.Q();
      for (int64_t g = 0; g < shape.groups; ++g) {
        sgemm_strided_batched(stream, pixels, shape.K, shape.CRS(),
                              columns + g * shape.CRS() * chunk.ld, chunk.ld,
                              int64_t{shape.groups} * shape.CRS() * chunk.ld,
                              conv.filters + g * shape.K * shape.CRS(), shape.CRS(), 0,
                              output + g * shape.KPQ(), shape.PQ(), shape.output_pitch(), images);
      }
    }
  }
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"02_im2col_gemm", "im2col, then cuBLAS", enqueue, workspace, false});

}  // namespace
}  // namespace convladder
