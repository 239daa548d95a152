  const int q = i % shape.Q();
  const int p = i / shape.Q() % shape.P();
  const int k = i / shape.PQ();
