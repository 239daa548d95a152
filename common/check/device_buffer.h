// Device memory of float32 that notices stray writes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace convladder {

// kNone leaves the allocation bare: not a float longer than the tensor, nothing written into it.
// What our own guards would hide is then seen by a tool that watches allocations.
enum class Guards { kZones, kNone };

// `count` floats on the device, filled with NaN, between two guard zones of a known pattern.
// `offset` floats (0..3) shift the start off the allocation's alignment, to test pointers that are
// only 4-byte aligned. Throws CudaError; when memory is short the message gives the bytes needed
// and free.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int64_t count, int offset = 0, Guards guards = Guards::kZones);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&&) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;

  float* data() const { return static_cast<float*>(allocation_) + front_; }
  int64_t count() const { return count_; }
  void upload(const float* host);       // count() floats
  void download(float* host) const;     // count() floats
  bool holds(const float* host) const;  // these count() floats, bit by bit
  void fill_nan();
  // Empty when both guard zones are untouched (or there are none); else which side was written, and
  // how far off.
  std::string guard_damage() const;

 private:
  void write_guards();

  void* allocation_ = nullptr;
  int64_t count_ = 0;
  int64_t front_ = 0, back_ = 0;  // floats before and after the tensor
  Guards guards_;
};

}  // namespace convladder
