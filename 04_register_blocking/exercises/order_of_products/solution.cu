__host__ __device__ constexpr Product product(int step) {
  const int m = step / TN, j = step % TN;
  return {m, m % 2 ? TN - 1 - j : j};  // to and fro
}
