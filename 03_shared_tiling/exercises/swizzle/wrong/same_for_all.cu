// The output says: missed
  // In which column of its row the tile keeps tap `tap` of pixel `pixel`.
  __device__ inline int column(int pixel, int tap) {
    (void)pixel;
    return (tap + 1) % BK;
  }
