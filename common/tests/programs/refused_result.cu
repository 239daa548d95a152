// A kernel with a result.
// seen: {kernel}: error: kernel: a kernel returns void
// status: 1
__global__ int kernel() { return 1; }  // kernel

int main() { kernel<<<1, 1>>>(); }
