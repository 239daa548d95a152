  begin_copies(slots[0], 0);
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(0);  // this thread's copies of this tile are done
    __syncthreads();           // everybody's are; and the tile before is read to the end
    if (tile + 1 < tiles) begin_copies(slots[(tile + 1) % 2], tile + 1);
    multiply(slots[tile % 2]);
  }
