// The output says: shared memory
      const bool fits = span <= ROOM;  // else each pixel has its own, as before
      if (fits) {
        for (int i = tid; i < span; i += BQ) x[i] = input_at(plane, h, w0 + i, shape);
      } else {
        for (int s = 0; s < count; ++s) x[s * BQ + tid] = input_at(plane, h, w0 + tid * step + s * dil, shape);
      }
      for (int s = 0; s < count; ++s) {
        const float value = x[fits ? tid * step + s * dil : s * BQ + tid];
        for (int m = 0; m < BM; ++m) sum[m] += taps[m][s] * value;
      }
