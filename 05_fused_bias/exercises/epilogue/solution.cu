  if (exists && k0 + ty < shape.K) {
    if (bias) sum += bias[k0 + ty];
    if (relu && sum < 0.0f) sum = 0.0f;  // false for NaN, which stays
    output[offset(at, k0 + ty, shape)] = sum;
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks = blocks_m * ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  conv2d<<<grid_x(blocks), THREADS, 0, stream>>>(shape, blocks_m, conv.input, conv.filters, conv.bias, conv.output, conv.relu);
}
