// The output says: missed
  for (int i = 0; i < BK; ++i) {
    __align__(16) float w[4];
    vec4(w) = vec4(&w_tile[ty][i / 4 * 4]);  // one access of 16 bytes
    sum += w[i % 4] * x_tile[i][tx];
  }
