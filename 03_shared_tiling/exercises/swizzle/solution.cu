// In which column of its row the tile keeps tap `tap` of pixel `pixel`.
__device__ inline int column(int pixel, int tap) {
  return tap ^ pixel;  // BK is a power of two: a permutation of each row
}
