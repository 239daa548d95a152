// What the simulator can't run is refused with its line.
// seen: {texture}: error: cudaTextureObject_t: textures are not simulated
// status: 1
__global__ void sample(cudaTextureObject_t texture) {}  // texture

int main() { return 0; }
