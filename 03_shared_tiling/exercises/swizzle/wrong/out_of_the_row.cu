// The output says: data race
  // In which column of its row the tile keeps tap `tap` of pixel `pixel`.
  __device__ inline int column(int pixel, int tap) {
    return tap + pixel;
  }
