// The output says: data race
  const int q = threadIdx.x % shape.Q();
  const int p = i / shape.Q() % shape.P();
  const int k = i / shape.PQ();
