// The output says: stray access
  const float* second = filter + (two ? shape.CRS() : 0);
  float sum0 = 0.0f, sum1 = 0.0f;
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      const int h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      for (int s = 0; s < shape.S; ++s) {
        const int w = q * shape.stride_w - shape.pad_w + s * shape.dil_w;
        if (w < 0 || w >= shape.W) continue;
        const float x = image[(c * shape.H + h) * shape.W + w];
        const int tap = (c * shape.R + r) * shape.S + s;
        sum0 += x * filter[tap];
        sum1 += x * second[tap];
      }
    }
  }
  out[0] = sum0;
  out[shape.PQ()] = sum1;
