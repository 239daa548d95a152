// The fixture of tests that need a device: the simulator's is always there.
#pragma once

#include <gtest/gtest.h>

#include "common/core/launch.h"
#include "common/harness/backend.h"

namespace convladder {

// Skips its tests where there is no GPU, with the reason.
class DeviceTest : public testing::Test {
 public:
  // For who reads the report of a run: where it was.
  static void SetUpTestSuite() {
    RecordProperty("backend", backend_name());
    try {
      require_device();
      RecordProperty("device", device_name());
    } catch (const CudaError&) {
      // SetUp() says so.
    }
  }

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
