// A template of variables, whose instances g++ puts where it likes. Those without a value get one
// from the host, and are known by that.
// seen: {variable}: error: a template of variables with a value in device memory is not simulated
// status: 1
template <int N>
constexpr int twice = 2 * N;
template <int N>
__device__ int numbers = N;  // variable

__global__ void read(int* out) { *out = numbers<3> + twice<2>; }

int main() { read<<<1, 1>>>(nullptr); }
