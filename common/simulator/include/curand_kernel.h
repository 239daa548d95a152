// The simulator's <curand_kernel.h>: random numbers of a kernel's threads by XORWOW (Marsaglia: Xorshift
// RNGs, 2003) and Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, 2011), bit for bit
// those of cuRAND, but for what the host's logf(), sinf() and their like round otherwise. States have its
// sizes, since they lie in memory.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_runtime.h>

#include <cstdint>

struct curandStateXORWOW {
  unsigned d, v[5];
  int boxmuller_flag, boxmuller_flag_double;  // whether the second of a pair is left
  float boxmuller_extra;
  int unused;  // named, so that whoever copies a state reads nothing that nobody has written
  double boxmuller_extra_double;
};
struct curandStatePhilox4_32_10 {
  uint4 ctr;     // of the numbers in `output`
  uint4 output;  // of which STATE have been given
  uint2 key;
  unsigned STATE;
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
using curandStateXORWOW_t = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandState_t = curandStateXORWOW;
using curandState = curandStateXORWOW;
static_assert(sizeof(curandState) == 48 && sizeof(curandStatePhilox4_32_10_t) == 64);

namespace convladder::simulator {

// `steps` steps of XORWOW's five words, or so many sequences of 2^67 steps.
void skip_xorwow(unsigned (&words)[5], uint64_t steps, bool sequences);

inline uint4 philox_round(uint4 counter, uint2 key) {
  const uint64_t x = uint64_t{0xD2511F53} * counter.x, z = uint64_t{0xCD9E8D57} * counter.z;
  return {static_cast<unsigned>(z >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(z),
          static_cast<unsigned>(x >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(x)};
}
inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key);
    key.x += 0x9E3779B9;
    key.y += 0xBB67AE85;
  }
  return counter;
}

// The 64-bit number in `low` and `high`; returns whether it went beyond them.
inline bool add_to(unsigned& low, unsigned& high, uint64_t more) {
  const uint64_t before = uint64_t{high} << 32 | low, after = before + more;
  low = static_cast<unsigned>(after);
  high = static_cast<unsigned>(after >> 32);
  return after < before;
}

inline double uniform_of(unsigned low, unsigned high) {
  return (low ^ uint64_t{high} << 21) * 0x1p-53 + 0x1p-54;
}
// Box and Muller's pairs.
inline float2 normal_of(unsigned radius, unsigned angle) {
  const float u = radius * 0x1p-32f + 0x1p-33f;
  const float step = 0x1p-32f * 6.2831855f;
  const float length = sqrtf(-2 * logf(u));
  float2 pair;
  __sincosf(fmaf(static_cast<float>(angle), step, step / 2), &pair.x, &pair.y);
  pair.x *= length;
  pair.y *= length;
  return pair;
}
inline double2 normal_of(double radius, double angle) {  // an angle of 1 is a whole turn
  const double length = sqrt(-2 * log(radius));
  double2 pair;
  sincospi(2 * angle, &pair.x, &pair.y);
  pair.x *= length;
  pair.y *= length;
  return pair;
}

}  // namespace convladder::simulator

// ---- Begin, and what is left out ----

inline void skipahead(unsigned long long steps, curandStateXORWOW* state) {
  unsigned words[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  convladder::simulator::skip_xorwow(words, steps, false);
  for (int i = 0; i < 5; ++i) state->v[i] = words[i];
  state->d += 362437 * static_cast<unsigned>(steps);
}
inline void skipahead_sequence(unsigned long long sequences, curandStateXORWOW* state) {
  unsigned words[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  convladder::simulator::skip_xorwow(words, sequences, true);
  for (int i = 0; i < 5; ++i) state->v[i] = words[i];
}
inline void curand_init(unsigned long long seed, unsigned long long sequence,
                        unsigned long long steps, curandStateXORWOW* state) {
  const unsigned low = (static_cast<unsigned>(seed) ^ 0xaad26b49) * 1099087573;
  const unsigned high = (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefdd) * 2591861531;
  unsigned words[5] = {123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high,
                       5783321 + low};
  convladder::simulator::skip_xorwow(words, sequence, true);
  convladder::simulator::skip_xorwow(words, steps, false);
  *state = {6615241 + high + low + 362437 * static_cast<unsigned>(steps),
            {words[0], words[1], words[2], words[3], words[4]},
            0,
            0,
            0,
            0,
            0};
}

inline void skipahead(unsigned long long steps, curandStatePhilox4_32_10* state) {
  const unsigned given = state->STATE + static_cast<unsigned>(steps & 3);
  state->STATE = given & 3;
  if (convladder::simulator::add_to(state->ctr.x, state->ctr.y, steps / 4 + (given >> 2))) {
    convladder::simulator::add_to(state->ctr.z, state->ctr.w, 1);
  }
  state->output = convladder::simulator::philox(state->ctr, state->key);
}
inline void skipahead_sequence(unsigned long long sequences, curandStatePhilox4_32_10* state) {
  convladder::simulator::add_to(state->ctr.z, state->ctr.w, sequences);
  state->output = convladder::simulator::philox(state->ctr, state->key);
}
inline void curand_init(unsigned long long seed, unsigned long long sequence,
                        unsigned long long steps, curandStatePhilox4_32_10* state) {
  *state = {};
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  skipahead_sequence(sequence, state);
  skipahead(steps, state);
}

// ---- 32 random bits ----

inline unsigned curand(curandStateXORWOW* state) {
  const unsigned mixed = state->v[0] ^ state->v[0] >> 2, last = state->v[4];
  for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
  state->v[4] = last ^ last << 4 ^ mixed ^ mixed << 1;
  state->d += 362437;
  return state->v[4] + state->d;
}
inline unsigned curand(curandStatePhilox4_32_10* state) {
  const uint4 four = state->output;
  const unsigned given = state->STATE;
  if (given == 3) {
    skipahead(1, state);
  } else {
    state->STATE = given + 1;
  }
  return given == 0 ? four.x : given == 1 ? four.y : given == 2 ? four.z : four.w;
}
inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const uint4 a = state->output;
  skipahead(4, state);
  const uint4 b = state->output;
  switch (state->STATE) {
    case 0:
      return a;
    case 1:
      return {a.y, a.z, a.w, b.x};
    case 2:
      return {a.z, a.w, b.x, b.y};
    default:
      return {a.w, b.x, b.y, b.z};
  }
}

// ---- Uniform, above 0, up to 1 ----

template <typename State>
float curand_uniform(State* state) {
  return curand(state) * 0x1p-32f + 0x1p-33f;
}
inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {bits.x * 0x1p-32f + 0x1p-33f, bits.y * 0x1p-32f + 0x1p-33f, bits.z * 0x1p-32f + 0x1p-33f,
          bits.w * 0x1p-32f + 0x1p-33f};
}
inline double curand_uniform_double(curandStateXORWOW* state) {
  const unsigned low = curand(state);
  return convladder::simulator::uniform_of(low, curand(state));
}
inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return curand(state) * 0x1p-32 + 0x1p-32;
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {convladder::simulator::uniform_of(bits.x, bits.y),
          convladder::simulator::uniform_of(bits.z, bits.w)};
}

// ---- Normal, of mean 0 and deviation 1; and what e to the power of a normal number is ----

template <typename State>
float2 curand_normal2(State* state) {
  const unsigned radius = curand(state);
  return convladder::simulator::normal_of(radius, curand(state));
}
inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  const float2 a = convladder::simulator::normal_of(bits.x, bits.y);
  const float2 b = convladder::simulator::normal_of(bits.z, bits.w);
  return {a.x, a.y, b.x, b.y};
}
inline double2 curand_normal2_double(curandStateXORWOW* state) {
  const double radius = curand_uniform_double(state);
  return convladder::simulator::normal_of(radius, curand_uniform_double(state));
}
inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  const double2 both = curand_uniform2_double(state);
  return convladder::simulator::normal_of(both.x, both.y);
}

namespace convladder::simulator {

// One number of a pair that make() gives. The other one is kept, for a call of the same `kind` alone.
template <typename T, typename Make>
T one_of_pair(int kind, int& kept, T& other, const Make& make) {
  if (kept == kind) {
    kept = 0;
    return other;
  }
  const auto pair = make();
  other = pair.y;
  kept = kind;
  return pair.x;
}
constexpr int NORMAL = 1, LOG_NORMAL = 2;

}  // namespace convladder::simulator

template <typename State>
float curand_normal(State* state) {
  return convladder::simulator::one_of_pair(convladder::simulator::NORMAL, state->boxmuller_flag,
                                            state->boxmuller_extra,
                                            [&] { return curand_normal2(state); });
}
template <typename State>
double curand_normal_double(State* state) {
  return convladder::simulator::one_of_pair(
      convladder::simulator::NORMAL, state->boxmuller_flag_double, state->boxmuller_extra_double,
      [&] { return curand_normal2_double(state); });
}
template <typename State>
float2 curand_log_normal2(State* state, float mean, float deviation) {
  const float2 pair = curand_normal2(state);
  return {expf(mean + deviation * pair.x), expf(mean + deviation * pair.y)};
}
template <typename State>
double2 curand_log_normal2_double(State* state, double mean, double deviation) {
  const double2 pair = curand_normal2_double(state);
  return {exp(mean + deviation * pair.x), exp(mean + deviation * pair.y)};
}
template <typename State>
float curand_log_normal(State* state, float mean, float deviation) {
  return convladder::simulator::one_of_pair(
      convladder::simulator::LOG_NORMAL, state->boxmuller_flag, state->boxmuller_extra,
      [&] { return curand_log_normal2(state, mean, deviation); });
}
template <typename State>
double curand_log_normal_double(State* state, double mean, double deviation) {
  return convladder::simulator::one_of_pair(
      convladder::simulator::LOG_NORMAL, state->boxmuller_flag_double,
      state->boxmuller_extra_double,
      [&] { return curand_log_normal2_double(state, mean, deviation); });
}

#include "common/simulator/include/names_end.h"
