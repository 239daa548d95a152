// A filter of one row slides over a row of numbers. Input c has the value c, and filters 0, 1 and 2 have a 1 at one
// tap only, so that a sum says which input has come.
#include <cstdio>

constexpr int TAPS = 3, STRIDE = 2;             // of the filters
constexpr int TN = 4;                           // outputs of a thread, neighbours: a strip
constexpr int STRIPS = 4, FILTERS = 4;          // of the block: a thread for each strip and filter
constexpr int SPAN = TN + (TAPS - 1) / STRIDE;  // boxes of a phase

__global__ void slide(const float* input, const float (*filters)[TAPS],
                      float (*outputs)[STRIPS * TN]) {
  __shared__ float phases[STRIPS][STRIDE][SPAN];
  const int tid = threadIdx.x;

  const int strip = tid / FILTERS, col = tid % FILTERS;  // whose inputs this thread copies
  for (int c = col; c < SPAN * STRIDE; c += FILTERS) {
    phases[strip][c % STRIDE][c / STRIDE] = input[strip * TN * STRIDE + c];
  }
  __syncthreads();

  const int filter = tid / STRIPS, tx = tid % STRIPS;  // what it multiplies
  float x[SPAN], sum[TN] = {};
  for (int i = 0; i < TAPS; ++i) {
    const int s = i * STRIDE % TAPS;  // taps 0, 2, 1
    if (s < STRIDE) {                 // the first of its phase
      for (int box = 0; box < SPAN; ++box) x[box] = phases[tx][s % STRIDE][box];
    }
    for (int j = 0; j < TN; ++j) sum[j] += filters[filter][s] * x[s / STRIDE + j];
  }
  for (int j = 0; j < TN; ++j) outputs[filter][tx * TN + j] = sum[j];
}

int main() {
  float values[64], filters[FILTERS][TAPS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}};
  for (int c = 0; c < 64; ++c) values[c] = c;
  float sums[FILTERS][STRIPS * TN], *input, (*weights)[TAPS], (*outputs)[STRIPS * TN];
  cudaMalloc(&input, sizeof(values));
  cudaMalloc(&weights, sizeof(filters));
  cudaMalloc(&outputs, sizeof(sums));
  cudaMemcpy(input, values, sizeof(values), cudaMemcpyHostToDevice);
  cudaMemcpy(weights, filters, sizeof(filters), cudaMemcpyHostToDevice);
  slide<<<1, STRIPS * FILTERS>>>(input, weights, outputs);
  cudaMemcpy(sums, outputs, sizeof(sums), cudaMemcpyDeviceToHost);
  for (int filter = 0; filter < FILTERS; ++filter) {
    std::printf("filter %d:", filter);
    for (const float value : sums[filter]) std::printf(" %3g", value);
    std::printf("\n");
  }
  cudaFree(input);
  cudaFree(weights);
  cudaFree(outputs);
}
