// The output says: nobody has written
  if (k >= shape.K || pq >= shape.PQ() / PIXELS * PIXELS) return;
