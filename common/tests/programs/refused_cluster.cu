// Blocks in clusters.
// seen: {cluster}: error: __cluster_dims__: clusters are not simulated
// status: 1
__global__ void __cluster_dims__(2, 1, 1)  // cluster
    kernel() {}

int main() { kernel<<<2, 1>>>(); }
