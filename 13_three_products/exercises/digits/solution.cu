  // What rounding leaves behind is a TF32 number as well. The rests' own product is too small to matter.
  float a_high[4], a_low[4], b_high[2], b_low[2], eight[4] = {};
  UNROLL for (int i = 0; i < 4; ++i) {
    a_high[i] = to_tf32(a[i]);
    a_low[i] = to_tf32(a[i] - a_high[i]);
  }
  UNROLL for (int i = 0; i < 2; ++i) {
    b_high[i] = to_tf32(b[i]);
    b_low[i] = to_tf32(b[i] - b_high[i]);
  }
  mma_tf32(eight, eight + 2, a_low, b_high);
  mma_tf32(eight, eight + 2, a_high, b_low);
  mma_tf32(eight, eight + 2, a_high, b_high);
  UNROLL for (int i = 0; i < 4; ++i) sum[i] += eight[i];  // rounded here; the tensor core cuts off
