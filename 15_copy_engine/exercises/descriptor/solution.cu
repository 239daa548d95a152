// Where number k of a row lies in a tile: 16 bytes i of row r at place i ^ (r % 8).
__device__ int place(int row, int k) { return row * BK + ((k / 4) ^ (row % 8)) * 4 + k % 4; }

// The tile's first byte in units of 16, a 1 that nobody reads, from eight rows to the next, and swizzle 1.
__device__ uint64_t describe(const float* rows) {
  return uint64_t{shared_address(rows) / 16} | uint64_t{1} << 16 | uint64_t{8 * 128 / 16} << 32 |
         uint64_t{1} << 62;
}

// sum += x * w for the 64 pixels (rows of x) and 64 filters (rows of w), a thread's sums as wgmma deals them out.
__device__ void multiply_tile(float* sum, const float* x, const float* w) {
  const uint64_t pixels = describe(x), filters = describe(w);
  products_begin();
  UNROLL for (int k = 0; k < BK / 8; ++k) multiply<BM>(sum, pixels + 2 * k, filters + 2 * k, 1);
  products_commit();
  products_wait();
}
