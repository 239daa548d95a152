constexpr int ROWS = 8;  // outputs of a thread, one below the other

// Adds what one channel gives. A row of inputs is read once, and serves every output whose window has it.
__device__ void add_channel(float (&sum)[ROWS], const float (&filter)[SIZE][SIZE],
                            const float* plane, int h0, int w0, const ConvShape& shape) {
  UNROLL for (int y = 0; y < ROWS + SIZE - 1; ++y) {
    float x[SIZE];
    UNROLL for (int s = 0; s < SIZE; ++s) {
      const bool inside = within(h0 + y, shape.H) && within(w0 + s, shape.W);
      x[s] = inside ? plane[(h0 + y) * shape.W + w0 + s] : 0.0f;
    }
    UNROLL for (int i = 0; i < ROWS; ++i) {
      const int r = y - i;
      if (r < 0 || r >= SIZE) continue;
      UNROLL for (int s = 0; s < SIZE; ++s) sum[i] += filter[r][s] * x[s];
    }
  }
}
