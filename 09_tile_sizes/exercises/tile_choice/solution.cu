// How many filters a thread takes: as few loads as can be, and of two sizes with as many the larger.
int filters_of_a_thread(const ConvShape& shape) {
  const auto loads = [&](int size) { return ceil_div(shape.K, size) * (size + 1); };
  int best = 32;
  for (const int size : {16, 8, 4}) {
    if (loads(size) < loads(best)) best = size;
  }
  return best;
}
