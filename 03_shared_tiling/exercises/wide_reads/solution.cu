    for (int i = 0; i < BK; i += 4) {
      __align__(16) float w[4];
      vec4(w) = vec4(&w_tile[ty][i]);  // one access of 16 bytes
      for (int j = 0; j < 4; ++j) sum += w[j] * x_tile[i + j][tx];
    }
