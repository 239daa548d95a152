// The simulator's <mma.h>: matrices spread over the lanes of a warp, which its tensor core multiplies.
// How they are spread is not said, as in CUDA; here so that loads and stores are a GPU's: in each 8 x 8
// numbers lane 4 * g + t has the numbers 2 * t and 2 * t + 1 of the row g (or column, as memory has them).
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <utility>

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
  return sim::bits_as<float>((sim::bits_as<uint32_t>(x) + (x == x ? 0x1000 : 0)) & 0xffffe000);
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
  static constexpr bool BYTE = std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>;
  static constexpr bool SUM = std::is_same_v<Use, accumulator>;
  static_assert(SUM ? std::is_same_v<T, float> || std::is_same_v<T, __half> ||
                          std::is_same_v<T, int>
                    : HALF || BYTE || std::is_same_v<T, precision::tf32>,
                "matrices of other numbers than half, bfloat16, TF32 and bytes are not simulated");
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
// Rows or columns, as memory has them one after the other, and the numbers in each.
template <typename Fragment>
struct Shape;
template <typename Use, int M, int N, int K, typename T, typename Layout>
struct Shape<fragment<Use, M, N, K, T, Layout>> {
  using Fragment = fragment<Use, M, N, K, T, Layout>;
  static constexpr bool BY_ROWS = !std::is_same_v<Layout, col_major>;  // and an accumulator
  static constexpr unsigned LINES = BY_ROWS ? Fragment::ROWS : Fragment::COLUMNS;
};

// The line, and the place in it, of a lane's element.
template <typename Fragment>
std::pair<unsigned, unsigned> place_of(unsigned lane, unsigned element) {
  constexpr unsigned BLOCKS = Shape<Fragment>::LINES / 8;
  return {lane / 4 + element / 2 % BLOCKS * 8,
          lane % 4 * 2 + element % 2 + element / 2 / BLOCKS * 8};
}

// A matrix of the numbers that the lanes have.
template <typename Fragment, typename Part, typename Member, typename Matrix>
void collect(void* const* parts, Member Part::*member, Matrix& matrix) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < Fragment::num_elements; ++i) {
      const auto [line, at] = place_of<Fragment>(lane, i);
      const bool by_rows = Shape<Fragment>::BY_ROWS;
      matrix[by_rows ? line : at][by_rows ? at : line] =
          (static_cast<Part*>(parts[lane])->*member)->x[i];
    }
  }
}

template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};
// Calls move(two elements, in memory) or move(an element, in memory) until all are moved: neighbours in a line
// are one access.
template <typename Fragment, typename Memory, typename Move>
void move_elements(Fragment& all, Memory* memory, unsigned stride, bool by_lines,
                   const Move& move) {
  for (unsigned i = 0; i < Fragment::num_elements; i += by_lines ? 2 : 1) {
    const auto [line, at] = place_of<std::remove_const_t<Fragment>>(sim::lane_id(), i);
    if (by_lines) {
      using PairOf = std::conditional_t<std::is_const_v<Memory>,
                                        const Pair<std::remove_const_t<Memory>>, Pair<Memory>>;
      move(all.x[i], all.x[i + 1], reinterpret_cast<PairOf*>(memory + line * stride + at));
    } else {
      move(all.x[i], memory + at * stride + line);
    }
  }
}
template <typename T>
using WordOf = std::conditional_t<  // of a pair, as one access
    sizeof(T) == 1, uint16_t, std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
struct Load {
  template <typename Element, typename From>
  void operator()(Element& x, Element& y, const Pair<From>* from) const {
    const auto both = sim::bits_as<Pair<From>>(*reinterpret_cast<const WordOf<From>*>(from));
    x = both.x, y = both.y;
  }
  template <typename Element, typename From>
  void operator()(Element& x, const From* from) const {
    x = *from;
  }
};
struct Store {
  template <typename Element, typename To>
  void operator()(const Element& x, const Element& y, Pair<To>* to) const {
    *reinterpret_cast<WordOf<To>*>(to) = sim::bits_as<WordOf<To>>(Pair<To>{To(x), To(y)});
  }
  template <typename Element, typename To>
  void operator()(const Element& x, To* to) const {
    *to = x;
  }
};

// All 32 lanes must take part in a load or a store, as in a product, and it orders memory as __syncwarp() does.
inline void meet(const char* name, sim::Place place) {
  sim::meet({name, place, ~0u, sim::LaneCall::Kind::kFragment});
}

// As CUDA wants a matrix in memory: it begins at 32 bytes, and its lines at 16.
template <typename Memory>
void check_memory(const char* name, const Memory* memory, unsigned stride, sim::Place place) {
  constexpr unsigned MULTIPLE = 16 / sizeof(Memory);
  if (stride % MULTIPLE != 0 || reinterpret_cast<uintptr_t>(memory) % 32 != 0) {
    sim::note_matrix(name, place, stride, MULTIPLE);
  }
}
}  // namespace detail

template <typename Use, int M, int N, int K, typename T, typename Layout, typename Memory>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& all, const Memory* from, unsigned stride,
                      CONVLADDER_HERE) {
  detail::check_memory("load_matrix_sync", from, stride, place);
  detail::meet("load_matrix_sync", place);
  detail::move_elements(all, from, stride, true, detail::Load());
}
template <int M, int N, int K, typename T, typename Memory>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& all, const Memory* from, unsigned stride,
                      layout_t layout, CONVLADDER_HERE) {
  detail::check_memory("load_matrix_sync", from, stride, place);
  detail::meet("load_matrix_sync", place);
  detail::move_elements(all, from, stride, layout == mem_row_major, detail::Load());
}
template <int M, int N, int K, typename T, typename Memory>
void store_matrix_sync(Memory* to, const fragment<accumulator, M, N, K, T>& all, unsigned stride,
                       layout_t layout, CONVLADDER_HERE) {
  detail::check_memory("store_matrix_sync", to, stride, place);
  detail::move_elements(all, to, stride, layout == mem_row_major, detail::Store());
  detail::meet("store_matrix_sync", place);
}

// d = a * b + c
template <int M, int N, int K, typename D, typename T, typename A, typename B, typename C>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, A>& a,
              const fragment<matrix_b, M, N, K, T, B>& b,
              const fragment<accumulator, M, N, K, C>& c, CONVLADDER_HERE) {
  using Left = fragment<matrix_a, M, N, K, T, A>;
  using Right = fragment<matrix_b, M, N, K, T, B>;
  using Addend = fragment<accumulator, M, N, K, C>;
  using Result = fragment<accumulator, M, N, K, D>;
  struct Part {
    Result* d;
    const Left* a;
    const Right* b;
    const Addend* c;
  } own = {&d, &a, &b, &c};
  sim::LaneCall call = {
      "mma_sync", place, ~0u, sim::LaneCall::Kind::kMatrix, &own, [](void* const* parts, unsigned) {
        using Number = std::conditional_t<std::is_same_v<D, int>, int, float>;
        Number x[M][K], w[K][N], sum[M][N];
        detail::collect<Left>(parts, &Part::a, x);
        detail::collect<Right>(parts, &Part::b, w);
        detail::collect<Addend>(parts, &Part::c, sum);
        for (int i = 0; i < M * N; ++i) {
          Number column[K];
          for (int k = 0; k < K; ++k) column[k] = w[k][i % N];
          Number& one = sum[i / N][i % N];
          if constexpr (std::is_same_v<Number, int>) {  // goes round
            for (int k = 0; k < K; ++k) {
              const int product = x[i / N][k] * column[k];
              one = static_cast<int>(static_cast<unsigned>(one) + product);
            }
          } else if constexpr (K == 8 && std::is_same_v<T, precision::tf32>) {
            one = sim::multiply_add_tf32(x[i / N], column, one);
          } else {
            one = sim::multiply_add(x[i / N], column, K, one);
          }
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned i = 0; i < Result::num_elements; ++i) {
            const auto [row, at] = detail::place_of<Result>(lane, i);
            static_cast<Part*>(parts[lane])->d->x[i] = sum[row][at];
          }
        }
      }};
  call.instructions = 2;  // of 16 x 8 x K, as the tensor core's
  sim::meet(call);
}

}  // namespace nvcuda::wmma

#include "common/simulator/include/names_end.h"
