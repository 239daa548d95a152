// The output says: data race
  const int q = i % shape.Q();
  const int p = i / shape.P() % shape.P();
  const int k = i / shape.PQ();
