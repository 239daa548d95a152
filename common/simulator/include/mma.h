// The simulator's <mma.h>: matrices spread over the lanes of a warp, which its tensor core multiplies.
// How they are spread is not said, as in CUDA; here lane i has the i-th part of the rows. The requests
// of loads and stores are therefore not those of a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/simulator/tensor_core.h"

namespace nvcuda::wmma {
namespace sim = convladder::simulator;

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
// Of which only the sign, the exponent and 10 bits count: the nearest such number.
inline float __float_to_tf32(float x) {
  return sim::bits_as<float>((sim::bits_as<uint32_t>(x) + 0x1000) & 0xffffe000);
}

template <typename T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<precision::tf32> {
  using Type = float;
};

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment {
  static constexpr bool HALF = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
  static constexpr bool SUM = std::is_same_v<Use, accumulator>;
  static_assert(SUM ? std::is_same_v<T, float> || std::is_same_v<T, __half>
                    : HALF || std::is_same_v<T, precision::tf32>,
                "the simulator multiplies half, bfloat16 and TF32 matrices, into float or half");
  static_assert(M * N == 256 && K == (std::is_same_v<T, precision::tf32> ? 8 : K) &&
                    (K == 8 || K == 16),
                "CUDA has no matrices of this shape and type");

 public:
  static constexpr int ROWS = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int COLUMNS = std::is_same_v<Use, matrix_a> ? K : N;
  static constexpr int num_elements = ROWS * COLUMNS / 32;
  using element_type = T;
  using storage_element_type = typename Stored<T>::Type;
  storage_element_type x[num_elements];
};

template <typename Use, int M, int N, int K, typename T, typename Layout, typename Value>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& all, const Value& value) {
  for (auto& element : all.x) element = value;
}

namespace detail {
// Calls each(element, index) with the index in memory of each of this lane's elements.
template <typename Fragment, typename Each>
void for_each_element(Fragment& all, unsigned stride, bool by_rows, const Each& each) {
  const unsigned first = sim::lane_id() * Fragment::num_elements;
  for (unsigned i = 0; i < Fragment::num_elements; ++i) {
    const unsigned row = (first + i) / Fragment::COLUMNS, column = (first + i) % Fragment::COLUMNS;
    each(all.x[i], by_rows ? row * stride + column : column * stride + row);
  }
}
}  // namespace detail

template <typename Use, int M, int N, int K, typename T, typename Layout, typename Memory>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& all, const Memory* from, unsigned stride,
                      CONVLADDER_HERE) {
  __syncwarp(~0u, place);
  detail::for_each_element(all, stride, std::is_same_v<Layout, row_major>,
                           [=](auto& element, unsigned at) { element = from[at]; });
}
template <int M, int N, int K, typename T, typename Memory>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& all, const Memory* from, unsigned stride,
                      layout_t layout, CONVLADDER_HERE) {
  __syncwarp(~0u, place);
  detail::for_each_element(all, stride, layout == mem_row_major,
                           [=](auto& element, unsigned at) { element = from[at]; });
}
template <int M, int N, int K, typename T, typename Memory>
void store_matrix_sync(Memory* to, const fragment<accumulator, M, N, K, T>& all, unsigned stride,
                       layout_t layout, CONVLADDER_HERE) {
  detail::for_each_element(all, stride, layout == mem_row_major,
                           [=](const auto& element, unsigned at) { to[at] = element; });
  __syncwarp(~0u, place);
}

// d = a * b + c
template <int M, int N, int K, typename D, typename T, typename A, typename B, typename C>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, A>& a,
              const fragment<matrix_b, M, N, K, T, B>& b,
              const fragment<accumulator, M, N, K, C>& c, CONVLADDER_HERE) {
  struct Part {
    fragment<accumulator, M, N, K, D>& d;
    const fragment<matrix_a, M, N, K, T, A>& a;
    const fragment<matrix_b, M, N, K, T, B>& b;
    const fragment<accumulator, M, N, K, C>& c;
  } own = {d, a, b, c};
  sim::LaneCall call = {
      "mma_sync", place, ~0u, sim::LaneCall::Kind::kMatrix, &own, [](void* const* parts, unsigned) {
        const auto part = [&](int i, int count) -> Part& {
          return *static_cast<Part*>(parts[i / count]);
        };
        float rows[M][K], columns[N][K];
        for (int i = 0; i < M * K; ++i) {
          rows[i / K][i % K] = part(i, M * K / 32).a.x[i % (M * K / 32)];
        }
        for (int i = 0; i < K * N; ++i) {
          columns[i % N][i / N] = part(i, K * N / 32).b.x[i % (K * N / 32)];
        }
        D results[M * N];
        for (int i = 0; i < M * N; ++i) {
          const float addend = part(i, 8).c.x[i % 8];
          if constexpr (K == 8 && std::is_same_v<T, precision::tf32>) {
            results[i] = sim::multiply_add_tf32(rows[i / N], columns[i % N], addend);
          } else {
            results[i] = sim::multiply_add(rows[i / N], columns[i % N], K, addend);
          }
        }
        for (int i = 0; i < M * N; ++i) part(i, 8).d.x[i % 8] = results[i];
      }};
  // Two of 16 x 8 x 8 in TF32, as the tensor core's; of others none are counted.
  call.instructions = std::is_same_v<T, precision::tf32> ? 2 : 0;
  sim::meet(call);
}

}  // namespace nvcuda::wmma
