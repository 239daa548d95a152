// The output says: missed
  constexpr int ROWS = BN, PITCH = BK + 2;
  __shared__ float x_tile[ROWS][PITCH];
  static_assert(ROWS >= BN && PITCH >= BK, "the tile must fit");
