// A program that takes too long is ended where somebody says so, and how far it has come is told.
// options: --seconds 2
// seen: the program was ended after 2 seconds of a processor in count_for_long at {kernel}, of which
// seen: blocks were done in
// seen: A smaller problem takes less
// status: 152
__global__ void count_for_long(int* counts) {  // kernel
  for (int i = 0; i < 100000; ++i) counts[blockIdx.x % 64] ^= i;
}

int main() {
  int* counts;
  cudaMalloc(&counts, 64 * sizeof(int));
  cudaMemset(counts, 0, 64 * sizeof(int));
  count_for_long<<<1000000, 1>>>(counts);
  return cudaDeviceSynchronize();
}
