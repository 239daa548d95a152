// The reader of .npy files.
#include "common/io/npy.h"
#include "common/tests/fuzz/fuzzing.h"

using namespace convladder;

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  read_or_complain(file.path(), [&] {
    const Array array = read_npy(file.path());
    uint64_t elements = 1;
    for (const int64_t extent : array.shape) {
      require(extent >= 0, "no extent is negative");
      elements *= static_cast<uint64_t>(extent);
    }
    require(array.data.size() == elements, "as many elements as the shape says");
    require(elements * sizeof(float) <= size, "no more elements than the file holds");
  });
  return 0;
}
