// Random numbers of <curand_kernel.h>: cuRAND's own, bit for bit, and what its manual says of sequences and
// steps.
#include <curand_kernel.h>

#include "check.h"

template <typename State>
__device__ State begin(unsigned long long seed, unsigned long long sequence,
                       unsigned long long steps) {
  State state;
  curand_init(seed, sequence, steps, &state);
  return state;
}

// What cuRAND's header for CUDA 13.0 gives on a host: five numbers, then one each of the uniform ones.
template <typename State>
__device__ void check_known(State state, const unsigned (&bits)[5], float uniform,
                            double uniform_double) {
  for (const unsigned known : bits) CHECK(curand(&state) == known);
  CHECK(curand_uniform(&state) == uniform);
  CHECK(curand_uniform_double(&state) == uniform_double);
}

__global__ void known() {
  check_known(begin<curandState>(0, 0, 0),
              {3179217846, 1883133293, 2220552389, 674260989, 306521119}, 0.46250838f,
              0.32935856264397007);
  check_known(begin<curandState>(1234, 5, 7),
              {3351265907, 3629609298, 415430802, 1173093345, 689711927}, 0.518549562f,
              0.61089903842023596);
  check_known(begin<curandState>(0x123456789abcdef, 0x100000003, (1ull << 33) + 1),
              {1729180846, 3308097160, 2729393854, 1346113262, 3133694451}, 0.567084014f,
              0.75704242436325941);
  check_known(begin<curandStatePhilox4_32_10_t>(1234, 5, 7),
              {1925342002, 648658203, 3633236749, 143597841, 3521664514}, 0.756296158f,
              0.21948088728822768);
  check_known(begin<curandStatePhilox4_32_10_t>(0x123456789abcdef, 0x100000003, (1ull << 33) + 1),
              {2137482064, 2516635588, 2513956983, 2104474635, 2306251373}, 0.391023159f,
              0.9778231680393219);
}

template <typename State>
__device__ void check_steps(unsigned long long steps) {
  State one = begin<State>(threadIdx.x, blockIdx.x, 0),
        other = begin<State>(threadIdx.x, blockIdx.x, steps);
  State skipped = one;
  skipahead(steps, &skipped);
  for (unsigned long long i = 0; i < steps; ++i) curand(&one);
  State next = begin<State>(threadIdx.x, 0, 0);
  skipahead_sequence(blockIdx.x, &next);
  skipahead(steps, &next);
  for (int i = 0; i < 6; ++i) {
    const unsigned bits = curand(&one);
    CHECK(bits == curand(&other));
    CHECK(bits == curand(&skipped));
    CHECK(bits == curand(&next));
  }
}

__global__ void steps() {
  for (unsigned long long count : {0, 1, 3, 4, 5, 100}) {
    check_steps<curandState>(count);
    check_steps<curandStatePhilox4_32_10_t>(count);
  }
  auto four = begin<curandStatePhilox4_32_10_t>(7, threadIdx.x, threadIdx.x), single = four;
  for (int i = 0; i < 3; ++i) {
    const uint4 bits = curand4(&four);
    CHECK(bits.x == curand(&single) && bits.y == curand(&single));
    CHECK(bits.z == curand(&single) && bits.w == curand(&single));
  }
}

template <typename State>
__device__ void check_distribution() {
  constexpr int COUNT = 4000;
  State state = begin<State>(42, threadIdx.x, 0);
  double sum = 0, squares = 0, uniform = 0;
  for (int i = 0; i < COUNT; ++i) {
    const float u = curand_uniform(&state), n = curand_normal(&state);
    CHECK(u > 0 && u <= 1);
    uniform += u;
    sum += n;
    squares += n * n;
  }
  CHECK(fabs(uniform / COUNT - 0.5) < 0.025);  // five deviations of the mean
  CHECK(fabs(sum / COUNT) < 0.08);
  CHECK(fabs(squares / COUNT - 1) < 0.115);
  State first = begin<State>(1, 2, 3), second = first;
  const float2 pair = curand_normal2(&first);
  CHECK(curand_normal(&second) == pair.x);
  CHECK(curand_normal(&second) == pair.y);
}

__global__ void distributions() {
  check_distribution<curandState>();
  check_distribution<curandStatePhilox4_32_10_t>();
}

int main() {
  known<<<1, 1>>>();
  steps<<<3, 32>>>();
  distributions<<<1, 32>>>();
  return finish();
}
