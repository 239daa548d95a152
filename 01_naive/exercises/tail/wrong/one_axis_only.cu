// The output says: stray access
  if (k >= shape.K) return;
