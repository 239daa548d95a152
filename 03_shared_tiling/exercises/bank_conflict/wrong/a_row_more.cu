// The output says: missed
  constexpr int ROWS = BN + 1, PITCH = BK;
  __shared__ float x_tile[ROWS][PITCH];
  static_assert(ROWS >= BN && PITCH >= BK, "the tile must fit");
