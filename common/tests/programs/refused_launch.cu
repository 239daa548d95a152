// A function without __global__ can't be launched.
// seen: {launch}: error: add: a function without __global__ can't be launched
// status: 1
__device__ void add(int* x) { ++*x; }

int main() {
  add<<<1, 1>>>(nullptr);  // launch
}
