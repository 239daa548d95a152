constexpr int TM = 4, TN = 4;  // filters and output pixels per thread

// The products of one tap: 8 values are read for 16 products.
__device__ void multiply(float (&sum)[TM][TN], const float* w, const float* x) {
  __align__(16) float w_here[TM], x_here[TN];  // in registers
  vec4(w_here) = vec4(w);
  vec4(x_here) = vec4(x);
  UNROLL for (int m = 0; m < TM; ++m) {
    UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w_here[m] * x_here[j];
  }
}
