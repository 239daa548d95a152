// The output says: wrong result
  UNROLL for (int i = 0; i < BK; ++i) {
    __align__(16) float w[TM], x[TN];  // registers: 8 values for 16 products
    vec4(w) = vec4(&w_tile[i][tx * TM]);
    vec4(x) = vec4(&x_tile[i][ty * TN]);
    UNROLL for (int m = 0; m < TM; ++m) {
      UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w[m] * x[j];
    }
  }
