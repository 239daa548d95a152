// The output says: wrong result
  __align__(16) float w[TM], x[TN];
  vec4(w) = vec4(&w_tile[0][ty * TM]);
  vec4(x) = vec4(&x_tile[0][tx * TN]);
  for (int i = 0; i < BK; ++i) {
    UNROLL for (int m = 0; m < TM; ++m) {
      UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w[m] * x[j];
    }
  }
