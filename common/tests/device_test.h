// The fixture of tests that need a device: the simulator's is always there.
#pragma once

#include <gtest/gtest.h>

#include "common/check/backend.h"
#include "common/core/launch.h"

namespace convladder {

// Skips its tests where there is no GPU, with the reason.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      require_device();
    } catch (const CudaError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

}  // namespace convladder
