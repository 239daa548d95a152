// The output says: missed
  const int row = lane / 4, col = lane % 4;
  for (int crs = 0; crs < shape.CRS(); crs += BK / 2) {
    float a[4] = {}, b[2] = {};
    UNROLL for (int i = 0; i < 2; ++i) {
      a[i] = filter_at(filters, k0 + row + i * 8, crs + col, shape);
    }
    b[0] = input_at(input, pixels[row], crs + col, shape);
    multiply_add(sum, a, b);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const Pixel at = pixels[2 * col + i % 2];
    const int k = k0 + row + i / 2 * 8;
    if (at.n < shape.N && k < shape.K) output[offset(at, k, shape)] = sum[i];
  }
