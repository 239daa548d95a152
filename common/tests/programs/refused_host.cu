// A kernel can't call a function of the host; one of both, or constexpr, it can.
// seen: {call}: error: of_host: a kernel can't call a function of the host (without __device__)
// status: 1
int of_host(int x) { return x + 1; }
__host__ __device__ int of_both(int x) { return x + 2; }
constexpr int constant(int x) { return x + 3; }
__global__ void call(int* x) {
  *x = of_both(1) + constant(2);
  *x += of_host(3);  // call
}

int main() { call<<<1, 1>>>(nullptr); }
