// The output says: out of bounds
  const int row = lane / 4, col = lane % 4;
  for (int crs = 0; crs < shape.CRS(); crs += BK) {
    float a[4], b[2];
    UNROLL for (int i = 0; i < 4; ++i) {
      const int k = k0 + row + i % 2 * 8;
      a[i] = k < shape.K ? filters[k * shape.CRS() + crs + col + i / 2 * 4] : 0.0f;
    }
    UNROLL for (int i = 0; i < 2; ++i) {
      b[i] = input_at(input, pixels[row], crs + col + i * 4, shape);
    }
    multiply_add(sum, a, b);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const Pixel at = pixels[2 * col + i % 2];
    const int k = k0 + row + i / 2 * 8;
    if (at.n < shape.N && k < shape.K) output[offset(at, k, shape)] = sum[i];
  }
