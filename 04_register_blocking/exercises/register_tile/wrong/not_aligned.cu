// The output says: not aligned
  UNROLL for (int i = 0; i < BK; ++i) {
    __align__(16) float w[TM], x[TN];  // registers: 8 values for 16 products
    vec4(w) = vec4(&w_tile[i][ty * TM]);
    vec4(x) = vec4(&x_tile[i][tx * TN + 1]);
    UNROLL for (int m = 0; m < TM; ++m) {
      UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w[m] * x[j];
    }
  }
