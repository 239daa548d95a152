// A template of variables, whose instances g++ puts where it likes.
// seen: {variable}: error: a variable template in device memory is not simulated
// status: 1
template <int N>
constexpr int twice = 2 * N;
template <int N>
__device__ int numbers = N;  // variable

__global__ void read(int* out) { *out = numbers<3> + twice<2>; }

int main() { read<<<1, 1>>>(nullptr); }
