  for (int m = 0; m < TM; ++m) {
    const int k = k0 + ty * TM + m;
    const float b = bias && k < shape.K ? bias[k] : 0.0f;  // once for four outputs
    for (int j = 0; j < TN; ++j) {
      const Pixel out = pixels[tx * TN + j];
      if (out.n >= shape.N || k >= shape.K) continue;
      float value = sum[m][j] + b;
      if (relu && value < 0.0f) value = 0.0f;
      output[offset(out, k, shape)] = value;
    }
  }
