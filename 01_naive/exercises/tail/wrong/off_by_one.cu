// The output says: stray access
  if (k > shape.K || pq > shape.PQ()) return;
