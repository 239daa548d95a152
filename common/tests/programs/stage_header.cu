// A header of the stages, which is found without -I, has CUDA's words in it.
#include "common/core/indexing.h"

#include "check.h"

__global__ void indices() { CHECK(convladder::within(convladder::index(1, 2, 3), 6)); }

int main() {
  indices<<<1, 1>>>();
  return finish();
}
