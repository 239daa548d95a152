  const Pixel out = pixels[col];
  for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    vec4(&panel[ty][tx * TN]) = vec4(sum[m]);
    __syncthreads();  // this panel is complete
    for (int i = row; i < BM / TM; i += THREADS / BN) {
      const int k = k0 + i * TM + m;
      if (out.n < shape.N && k < shape.K) output[offset(out, k, shape)] = panel[i][col];
    }
  }
