// The output says: missed
  constexpr int ROWS = BN, PITCH = 2 * BK;
  __shared__ float x_tile[ROWS][PITCH];
  static_assert(ROWS >= BN && PITCH >= BK, "the tile must fit");
