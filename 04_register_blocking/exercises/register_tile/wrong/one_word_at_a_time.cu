// The output says: missed
  UNROLL for (int i = 0; i < BK; ++i) {
    __align__(16) float w[TM], x[TN];  // registers: 8 values for 16 products
    UNROLL for (int m = 0; m < TM; ++m) w[m] = w_tile[i][ty * TM + m];
    UNROLL for (int j = 0; j < TN; ++j) x[j] = x_tile[i][tx * TN + j];
    UNROLL for (int m = 0; m < TM; ++m) {
      UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w[m] * x[j];
    }
  }
