// What ptx.py makes of inline PTX: instructions as functions of registers, which are numbers of any type whose
// bits count.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "common/simulator/tensor_core.h"

namespace convladder::simulator::ptx {
using namespace convladder::simulator;

template <typename T, typename From>
T get(const From& from) {
  if constexpr (sizeof(T) == sizeof(From)) {
    return bits_as<T>(from);
  } else {
    return static_cast<T>(from);
  }
}
template <typename T, typename To>
void put(To& to, T value) {
  to = get<To>(value);
}

// ---- Values ----

template <typename T>
T subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) - uint64_t(b));
  return a - b;
}
template <typename T>
T product(T a, T b) {
  return static_cast<T>(uint64_t(a) * uint64_t(b));
}
template <typename T>
T high_product(T a, T b) {
  return static_cast<T>(static_cast<__int128>(a) * b >> 8 * sizeof(T));
}
template <typename T>
T fused(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(a, b, c);
  else if constexpr (sizeof(T) == 4)
    return __hfma2(a, b, c);
  else
    return __hfma(a, b, c);
}
// By all bits and more, zeros or signs come in.
template <typename T>
T shifted_left(T a, T by) {
  return uint64_t(by) < 8 * sizeof(T) ? static_cast<T>(uint64_t(a) << by) : 0;
}
template <typename T>
T shifted_right(T a, T by) {
  return uint64_t(by) < 8 * sizeof(T) ? static_cast<T>(a >> by) : static_cast<T>(a < 0 ? -1 : 0);
}
template <typename T>
T bits_from(T a, T first, T count) {
  const unsigned at = first & 255, length = count & 255, bits = 8 * sizeof(T);
  if (length == 0) return 0;
  if (at >= bits) return a < 0 ? -1 : 0;
  const unsigned above = at + length < bits ? bits - at - length : 0;
  return static_cast<T>(static_cast<T>(uint64_t(a) << above) >> (above + at));
}
template <typename T>
T bits_into(T a, T b, T first, T count) {
  const unsigned at = first & 255, length = count & 255;
  if (at >= 8 * sizeof(T)) return b;
  const T mask = static_cast<T>((length < 64 ? (uint64_t{1} << length) - 1 : ~uint64_t{0}) << at);
  return (b & ~mask) | (shifted_left<T>(a, at) & mask);
}
inline unsigned by_table(unsigned a, unsigned b, unsigned c, unsigned table) {
  unsigned result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return result;
}
template <typename To, typename From>
To converted(From from, int mode) {
  constexpr bool from_whole = std::is_integral_v<From>, to_whole = std::is_integral_v<To>;
  if constexpr (from_whole && to_whole) {
    return static_cast<To>(from);
  } else if constexpr (to_whole) {
    return to_integer<To>(from, mode);
  } else if constexpr (std::is_same_v<To, double>) {
    return narrow_double(from, mode);
  } else if constexpr (std::is_same_v<To, float>) {
    return narrow_float(from, mode);
  } else {
    return To::round(static_cast<float>(from), mode);
  }
}

// ---- Memory: a shared address counts from the begin of the block's shared memory ----

template <typename T>
void* at(const T& address, int64_t offset) {
  return reinterpret_cast<char*>(get<uint64_t>(address)) + offset;
}
template <typename T>
void* shared_at(const T& address, int64_t offset) {
  return shared_pointer(get<uint64_t>(address)) + offset;
}
template <typename T>
uint64_t shared_address(const T& address) {
  return __cvta_generic_to_shared(at(address, 0));
}
inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

template <typename T, std::size_t N>
struct alignas(sizeof(T) * N) Packed {
  T value[N];
};
template <typename T, bool STRONG, typename... To>
void load(const void* from, To&... to) {
  if constexpr (STRONG && sizeof...(To) == 1) {
    note_strong(from, false);
    (put<T>(to, *static_cast<const volatile T*>(from)), ...);
    return;
  }
  const auto all = *static_cast<const Packed<T, sizeof...(To)>*>(from);
  std::size_t i = 0;
  (put<T>(to, all.value[i++]), ...);
}
template <typename T, bool STRONG, typename... From>
void store(void* to, const From&... from) {
  if constexpr (STRONG && sizeof...(From) == 1) {
    note_strong(to, true);
    ((*static_cast<volatile T*>(to) = get<T>(from)), ...);
    return;
  }
  *static_cast<Packed<T, sizeof...(From)>*>(to) = {{get<T>(from)...}};
}

// ---- What lanes do together ----

template <typename T, typename By, typename To, typename... Within>
void shuffle(const char* how, T value, By by, int bounds, unsigned mask, To& to,
             Within&... within) {
  const unsigned lane = lane_id(), first = bounds >> 8 & lane,
                 limit = (bounds & 31 & ~(bounds >> 8)) | first;
  const unsigned by_bits = static_cast<unsigned>(by) & 31;
  const unsigned source = *how == 'u'   ? lane - by_bits
                          : *how == 'd' ? lane + by_bits
                          : *how == 'b' ? lane ^ by_bits
                                        : first | (by_bits & ~(bounds >> 8));
  const bool is_within =
      *how == 'u' ? static_cast<int>(source) >= static_cast<int>(limit) : source <= limit;
  to = exchange("shfl.sync", Place::here(), mask, value, is_within ? source : lane);
  ((within = is_within), ...);
}

// Each lane names a row of 16 bytes; it gets two numbers of each matrix, or gives them.
template <int COUNT, bool TRANSPOSED, bool TO_MEMORY>
void move_matrices(std::array<unsigned, 4>& words, Packed<unsigned, 4>& row, Place place) {
  struct Part {
    std::array<unsigned, 4>& words;
    Packed<unsigned, 4>& row;
  } own = {words, row};
  meet({TO_MEMORY ? "stmatrix" : "ldmatrix", place, ~0u, LaneCall::Kind::kExchange, &own,
        [](void* const* parts, unsigned) {
          for (int i = 0; i < COUNT * 64; ++i) {
            const int matrix = i / 64, row = i / 8 % 8, column = i % 8;
            const int lane = TRANSPOSED ? column * 4 + row / 2 : row * 4 + column / 2;
            const int half = TRANSPOSED ? row % 2 : column % 2;
            auto* const element =
                reinterpret_cast<char*>(&static_cast<Part*>(parts[matrix * 8 + row])->row) +
                2 * column;
            auto* const word =
                reinterpret_cast<char*>(&static_cast<Part*>(parts[lane])->words[matrix]) + 2 * half;
            std::memcpy(TO_MEMORY ? element : word, TO_MEMORY ? word : element, 2);
          }
        }});
}
template <int COUNT, bool TRANSPOSED, typename... To>
void load_matrices(const void* from, To&... to) {
  Packed<unsigned, 4> row{};
  std::array<unsigned, 4> words{};
  if (lane_id() < COUNT * 8) row = *static_cast<const Packed<unsigned, 4>*>(from);
  move_matrices<COUNT, TRANSPOSED, false>(words, row, Place::here());
  std::size_t i = 0;
  (put<unsigned>(to, words[i++]), ...);
}
template <int COUNT, bool TRANSPOSED, typename... From>
void store_matrices(void* to, const From&... from) {
  Packed<unsigned, 4> row{};
  std::array<unsigned, 4> words{get<unsigned>(from)...};
  move_matrices<COUNT, TRANSPOSED, true>(words, row, Place::here());
  if (lane_id() < COUNT * 8) *static_cast<Packed<unsigned, 4>*>(to) = row;
}

struct Tf32 {};
template <typename T>
constexpr LaneProduct::Number NUMBER = std::is_same_v<T, Tf32>            ? LaneProduct::kTf32
                                       : std::is_same_v<T, __half>        ? LaneProduct::kHalf
                                       : std::is_same_v<T, __nv_bfloat16> ? LaneProduct::kBfloat16
                                       : std::is_same_v<T, int8_t>        ? LaneProduct::kSigned
                                       : std::is_same_v<T, uint8_t>       ? LaneProduct::kUnsigned
                                       : std::is_same_v<T, float>         ? LaneProduct::kFloat
                                                                          : LaneProduct::kInteger;
template <int M, int N, int K, typename D, typename A, typename B, typename C, typename Ds,
          typename As, typename Bs, typename Cs>
void multiply(Ds d, As a, Bs b, Cs c, Place place = Place::here()) {
  static_assert(M == 16 && N == 8, "mma.sync of this shape is not simulated");
  LaneProduct own = {NUMBER<D>, NUMBER<A>, NUMBER<B>, NUMBER<C>, K, {}, {}, {}, {}};
  const auto fill = [](uint32_t* words, const auto& registers) {
    std::apply([&](auto&... each) { ((*words++ = get<uint32_t>(each)), ...); }, registers);
  };
  fill(own.left, a), fill(own.right, b), fill(own.addend, c);
  simulator::multiply("mma.sync", own, place);
  const uint32_t* word = own.result;
  std::apply([&](auto&... each) { (put<uint32_t>(each, *word++), ...); }, d);
}

// Barriers of a block that have a number, for some of its threads.
inline void barrier(unsigned number, unsigned threads = 0, Place place = Place::here()) {
  if (number == 0 && (threads == 0 || threads == block_size()))
    return static_cast<void>(sync_threads(false, place));
  named_barrier(number, threads == 0 ? block_size() : threads, true, place);
}
inline void arrive(unsigned number, unsigned threads, Place place = Place::here()) {
  named_barrier(number, threads, false, place);
}

// ---- A Hopper's ----

inline void elect(bool& is_elected, unsigned mask) { is_elected = __ffs(mask) - 1 == lane_id(); }
inline void elect(unsigned& elected, bool& is_elected, unsigned mask) {
  elected = __ffs(mask) - 1;
  elect(is_elected, mask);
}

template <typename T>
const void* variable_of(T& variable) {
  return &variable;
}
template <typename T>
const void* variable_of(const T&& /*a value*/) {
  return nullptr;
}

inline void take_sums(std::initializer_list<void*> registers) { take_sums(registers.begin()); }

struct Fragment {
  uint32_t words[4];
  const void* variables[4];  // that they are of, or null
};
template <typename... Words>
Fragment fragment_of(Words&&... words) {
  return {{get<uint32_t>(words)...}, {variable_of(std::forward<Words>(words))...}};
}

// `a` is a descriptor or a fragment; tell_registers() gives all registers of the sum to take_sums(). (Words in a
// pack or a tuple would be as right, but a kernel with such products then takes the compiler three times as long.)
template <int COLUMNS, int DEPTH, typename D, typename A, typename From, typename Tell>
__attribute__((always_inline)) inline void warpgroup_multiply(void* first_sum, From a, uint64_t b,
                                                              int adds, int a_sign, int b_sign,
                                                              const bool (&transposed)[2],
                                                              const Tell& tell_registers) {
  constexpr bool HALF_SUMS = std::is_same_v<D, __half>;
  static_assert(COLUMNS % 8 == 0 && COLUMNS <= 256 && DEPTH == (std::is_same_v<A, Tf32> ? 8 : 16),
                "wgmma of this shape is not simulated");
  using Part = WarpgroupProduct;
  Part part{};
  part.number = std::is_same_v<A, Tf32>     ? Part::kTf32
                : std::is_same_v<A, __half> ? Part::kHalf
                                            : Part::kBfloat16;
  part.sums_are_half = HALF_SUMS, part.adds = adds != 0;
  part.a_transposed = transposed[0], part.b_transposed = transposed[1];
  part.a_sign = a_sign, part.b_sign = b_sign, part.columns = COLUMNS, part.b = b;
  if constexpr (std::is_same_v<From, Fragment>) {
    part.a_in_registers = true;
    std::copy_n(a.words, 4, part.fragment);
    std::copy_n(a.variables, 4, part.variables);
  } else {
    part.a = a;
  }
  if (begin_product(part, first_sum)) tell_registers();
}

}  // namespace convladder::simulator::ptx
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
