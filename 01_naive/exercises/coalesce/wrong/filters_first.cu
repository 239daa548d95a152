// The output says: missed
  const int k = i % shape.K;
  const int q = i / shape.K % shape.Q();
  const int p = i / shape.K / shape.Q();
