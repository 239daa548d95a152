// The output says: missed
  for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    vec4(&panel[ty][tx * TN]) = vec4(sum[m]);
    __syncthreads();  // this panel is complete
    for (int i = tid; i < BM / TM * BN; i += THREADS) {
      const int k = k0 + i % (BM / TM) * TM + m;
      const Pixel out = pixels[i / (BM / TM)];
      if (out.n < shape.N && k < shape.K) output[offset(out, k, shape)] = panel[i % (BM / TM)][i / (BM / TM)];
    }
  }
