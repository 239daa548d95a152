// The output says: reads 4 bytes of global memory that nobody has written
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      const int h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      for (int s = 0; s < shape.S; ++s) {
        const int w = q * shape.stride_w - shape.pad_w + s * shape.dil_w;
        if (w < 0 || w >= shape.W) continue;
        output[n * shape.output_pitch() + kpq] += image[(c * shape.H + h) * shape.W + w] *
                                                  filter[(c * shape.R + r) * shape.S + s];
      }
    }
  }
