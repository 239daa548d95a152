  constexpr int SLOTS = 4;
  __shared__ Tile slots[SLOTS];
  __shared__ Barrier full[SLOTS], empty[SLOTS];
  if (tid == 0) {
    for (Barrier& barrier : full) init_barrier(&barrier, BN);
    for (Barrier& barrier : empty) init_barrier(&barrier, MULTIPLYING / 32);
    start_barriers();
  }
  __syncthreads();  // the barriers are ready
  if (tid >= MULTIPLYING) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int i = tile % SLOTS;
      wait(&empty[i], tile / SLOTS % 2 ^ 1);  // the tile that was there is read
      copy(slots[i], tile);
      arrive_when_copied(&full[i]);
    }
    return;
  }
  for (int tile = 0; tile < tiles; ++tile) {
    const int i = tile % SLOTS;
    wait(&full[i], tile / SLOTS % 2);  // the tile is there
    multiply_tile(slots[i]);
    __syncwarp();  // all of its lanes have read the tile
    if (tid % 32 == 0) arrive(&empty[i]);  // one lane for its warp
  }
