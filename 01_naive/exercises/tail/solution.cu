  if (k >= shape.K || pq >= shape.PQ()) return;  // no output is this thread's
