// The tensor core against the model that the simulator has of it, bit by bit, on either backend. In
// the simulator that tells whether fragments reach the model as they should; on a Hopper, whether the
// model is right.
#include "common/check/random.h"
#include "common/core/mma.h"
#include "common/simulator/tensor_core.h"
#include "common/tests/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int PRODUCTS = 4000;  // one per block

__global__ void multiply(const float* a,  // [PRODUCTS][16][8]
                         const float* b,  // [PRODUCTS][8][8]: column by column
                         const float* c,  // [PRODUCTS][16][8]
                         float* d) {
  const int lane = threadIdx.x, row = lane / 4, col = lane % 4;
  a += blockIdx.x * 128, b += blockIdx.x * 64, c += blockIdx.x * 128, d += blockIdx.x * 128;
  const float x[4] = {a[row * 8 + col], a[(row + 8) * 8 + col], a[row * 8 + col + 4],
                      a[(row + 8) * 8 + col + 4]};
  const float w[2] = {b[row * 8 + col], b[row * 8 + col + 4]};
  float sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(row + i / 2 * 8) * 8 + 2 * col + i % 2];
  mma_tf32(sum, sum + 2, x, w);
  for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + 2 * col + i % 2] = sum[i];
}

class TensorCore : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    cudaDeviceProp device;
    ASSERT_EQ(cudaGetDeviceProperties(&device, 0), cudaSuccess);
    if (device.major != 0 && device.major != 9) {  // 0: the simulator
      GTEST_SKIP() << "the model is a Hopper's, this is compute capability " << device.major;
    }
  }

  // Numbers in [-1, 1) times 2^e, with e up to `spread` in magnitude, drawn for each.
  static std::vector<float> draw(uint64_t seed, int64_t count, int spread) {
    std::vector<float> values(count);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = random_bits(seed, spread, i);
      const float uniform = (static_cast<float>(bits >> 40) - 0x1p23f) * 0x1p-23f;
      values[i] = std::ldexp(uniform, static_cast<int>(bits % (2 * spread + 1)) - spread);
    }
    return values;
  }

  static void expect_the_model(const std::vector<float>& a, const std::vector<float>& b,
                               const std::vector<float>& c) {
    DeviceBuffer x(a.size()), w(b.size()), addend(c.size()), result(c.size());
    x.upload(a.data()), w.upload(b.data()), addend.upload(c.data());
    launch(multiply, PRODUCTS, 32, nullptr, x.data(), w.data(), addend.data(), result.data());
    const std::vector<float> d = values_of(result);
    for (std::size_t i = 0; i < d.size(); ++i) {
      float row[8], column[8];
      for (int k = 0; k < 8; ++k) {
        row[k] = a[i / 8 * 8 + k];
        column[k] = b[i / 128 * 64 + i % 8 * 8 + k];
      }
      const float expected = simulator::multiply_add_tf32(row, column, c[i]);
      ASSERT_TRUE(d[i] == expected || (std::isnan(d[i]) && std::isnan(expected)))
          << std::hexfloat << "sum " << i << " of " << d.size() << ": " << d[i] << ", by the model "
          << expected;
    }
  }
};

TEST_F(TensorCore, IsAsItsModel) {
  constexpr struct {
    const char* numbers;
    int of_a, of_b, of_c;  // their spreads
    float scale;           // of c
  } CASES[] = {{"of one size", 0, 0, 0, 1},
               {"of many sizes", 8, 8, 12, 1},
               {"with a large addend", 2, 2, 3, 0x1p10f},
               {"up to the ends of the range", 126, 60, 126, 1}};
  for (const auto& [numbers, of_a, of_b, of_c, scale] : CASES) {
    SCOPED_TRACE(numbers);
    std::vector<float> c = draw(3, PRODUCTS * 128, of_c);
    for (float& value : c) value *= scale;
    expect_the_model(draw(1, PRODUCTS * 128, of_a), draw(2, PRODUCTS * 64, of_b), c);
  }
}

}  // namespace
}  // namespace convladder
