// The output says: two new operands where one would do
  __host__ __device__ constexpr Product product(int step) {
    return {TM - 1 - step / TN, TN - 1 - step % TN};
  }
