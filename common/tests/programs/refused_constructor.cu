// Variables of the device whose values are known when the program is compiled, and one whose value is not.
// seen: {computed}: error: computed: a variable of the device can't begin with what must be computed first
// status: 1
struct Empty {
  __device__ Empty() {}
  int x;
};
struct Constant {
  __host__ __device__ constexpr Constant() : x(3) {}
  int x;
};
struct Computed {
  __device__ Computed() : x(3) {}
  int x;
};
const float HALF = 0.5f;

__device__ Empty empty;
__device__ Constant constant[2];
__constant__ float one = 2 * HALF;
__device__ Computed computed;  // computed
__global__ void kernel(float* x) { *x = empty.x + constant[1].x + one + computed.x; }

int main() { kernel<<<1, 1>>>(nullptr); }
