// The output says: nobody has written
  if (k - threadIdx.y + FILTERS > unsigned(shape.K)) return;  // the block is not full
  if (pq >= shape.PQ()) return;
