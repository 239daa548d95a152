// The output says: wrong result
  if (exists && k0 + ty < shape.K) {
    if (relu && sum < 0.0f) sum = 0.0f;
    if (bias) sum += bias[k0 + ty];
    output[offset(at, k0 + ty, shape)] = sum;
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks = blocks_m * ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  launch(conv2d, grid_x(blocks), THREADS, stream, shape, blocks_m, conv.input, conv.filters,
         conv.bias, conv.output, conv.relu);
}
