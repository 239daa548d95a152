// The output says: waits for ever
  if (!exists || k0 + ty >= shape.K) return;  // nothing to compute
  w_tile[ty][tx] = filter_at(filters, k0 + ty, crs + tx, shape);
  x_tile[ty][tx] = input_at(image, h0, w0, crs + ty, shape);
  __syncthreads();  // the tiles are complete
  for (int i = 0; i < BK; ++i) sum += w_tile[ty][i] * x_tile[i][tx];
  __syncthreads();  // the tiles are read to the end
