  // A thread adds up its taps, a warp what its lanes have, and one lane adds that to the output.
  float sum = 0.0f;
  for (int crs = tid; crs < shape.CRS(); crs += THREADS) {
    sum += filter[crs] * input_at(image, h0, w0, crs, shape);
  }
  for (int away = 16; away > 0; away /= 2) sum += __shfl_down_sync(WHOLE_WARP, sum, away);
  if (tid % 32 == 0) atomicAdd(to, sum);
