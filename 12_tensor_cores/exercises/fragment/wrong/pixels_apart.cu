// The output says: wrong result
  const int row = lane / 4, col = lane % 4;
  for (int crs = 0; crs < shape.CRS(); crs += BK) {
    float a[4], b[2];
    UNROLL for (int i = 0; i < 4; ++i) {
      a[i] = filter_at(filters, k0 + row + i % 2 * 8, crs + col + i / 2 * 4, shape);
    }
    UNROLL for (int i = 0; i < 2; ++i) {
      b[i] = input_at(input, pixels[row], crs + col + i * 4, shape);
    }
    multiply_add(sum, a, b);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const Pixel at = pixels[col + i % 2 * 4];
    const int k = k0 + row + i / 2 * 8;
    if (at.n < shape.N && k < shape.K) output[offset(at, k, shape)] = sum[i];
  }
