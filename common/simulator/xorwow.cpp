// Far steps of the random numbers of <curand_kernel.h>. XORWOW's five words are 160 bits; a step is a matrix
// over the numbers modulo 2, and 2^n steps are its powers.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace convladder::simulator {
namespace {

using Words = std::array<uint32_t, 5>;
using Matrix = std::array<Words, 160>;  // what becomes of each bit alone

Words step(Words v) {
  const uint32_t mixed = v[0] ^ v[0] >> 2;
  return {v[1], v[2], v[3], v[4], v[4] ^ v[4] << 4 ^ mixed ^ mixed << 1};
}

Words times(const Matrix& matrix, const Words& v) {
  Words sum{};
  for (unsigned bit = 0; bit < matrix.size(); ++bit) {
    const uint32_t taken = -(v[bit / 32] >> bit % 32 & 1);
    for (unsigned i = 0; i < sum.size(); ++i) sum[i] ^= matrix[bit][i] & taken;
  }
  return sum;
}

constexpr unsigned OF_SEQUENCE = 67;  // a sequence has 2^67 steps

// Those of 2^n steps. (None of it on the heap or on the stack, which are a kernel's here.)
struct Powers {
  Powers() {
    for (unsigned bit = 0; bit < 160; ++bit) {
      Words one{};
      one[bit / 32] = 1u << bit % 32;
      of[0][bit] = step(one);
    }
    for (std::size_t n = 1; n < of.size(); ++n) {
      for (unsigned bit = 0; bit < 160; ++bit) of[n][bit] = times(of[n - 1], of[n - 1][bit]);
    }
  }
  std::array<Matrix, OF_SEQUENCE + 64> of;
};

}  // namespace

void skip_xorwow(unsigned (&words)[5], uint64_t steps, bool sequences) {
  static const Powers powers;
  Words v;
  std::copy(std::begin(words), std::end(words), v.begin());
  for (unsigned n = sequences ? OF_SEQUENCE : 0; steps != 0; ++n, steps >>= 1) {
    if (steps & 1) v = times(powers.of[n], v);
  }
  std::copy(v.begin(), v.end(), words);
}

}  // namespace convladder::simulator
