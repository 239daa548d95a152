  // One float more than a row needs: the words of a column lie in 32 different banks.
  constexpr int ROWS = BN, PITCH = BK + 1;
  __shared__ float x_tile[ROWS][PITCH];
  static_assert(ROWS >= BN && PITCH >= BK, "the tile must fit");
