  // One filter after the other: each lane adds up every 32nd tap, and then the lanes add theirs.
  for (int k = k0; k < k0 + 32 && k < shape.K; ++k) {
    float sum = 0.0f;
    TapWalk tap(lane, 32, shape);
    for (int crs = lane; crs < shape.CRS(); crs += 32) {
      sum += input_at(image, h0, w0, tap, shape) * filters[int64_t{k} * shape.CRS() + crs];
      tap.next(shape);
    }
    for (int away = 16; away > 0; away /= 2) sum += __shfl_down_sync(WHOLE_WARP, sum, away);
    if (lane == 0) output[offset(at, k, shape)] = sum;
  }
