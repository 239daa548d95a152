// Where tap crs of filter k lies in the packed filters: a tap's filters are neighbours.
__device__ int place(int k, int crs, int, int rows) { return crs * rows + k; }

// The values of filters k0 to k0 + 7 for tap crs, in two accesses.
__device__ void read_filters(float (&w)[TM], const float* packed, int k0, int crs, int CRS, int rows) {
  UNROLL for (int m = 0; m < TM; m += 4) {
    const float4 four = vec4(&packed[place(k0 + m, crs, CRS, rows)]);
    w[m] = four.x, w[m + 1] = four.y, w[m + 2] = four.z, w[m + 3] = four.w;
  }
}
