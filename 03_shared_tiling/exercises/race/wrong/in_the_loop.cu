// The output says: missed
  w_tile[ty][tx] = filter_at(filters, k0 + ty, crs + tx, shape);
  x_tile[ty][tx] = input_at(image, h0, w0, crs + ty, shape);
  for (int i = 0; i < BK; ++i) {
    if (i % 8 == 0) __syncthreads();  // every now and then: better safe than sorry
    sum += w_tile[ty][i] * x_tile[i][tx];
  }
  __syncthreads();
