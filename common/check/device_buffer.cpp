#include "common/check/device_buffer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/core/launch.h"

namespace convladder {
namespace {

// Floats in each guard zone: enough for a tile that hangs over the end. A multiple of 64, so that
// offset 0 keeps the 256-byte alignment of the allocation.
constexpr int64_t GUARD = 4096;

// Differs from float to float, so that shifting or copying a guard zone shows as well.
uint32_t guard_word(int64_t index) { return 0xC0DE0000u + static_cast<uint32_t>(index); }

std::vector<uint32_t> guard_pattern(int64_t count) {
  std::vector<uint32_t> words(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) words[i] = guard_word(i);
  return words;
}

std::size_t bytes(int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

void* allocate(std::size_t size) {
  void* pointer = nullptr;
  const cudaError_t code = cudaMalloc(&pointer, size);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky, but it would be reported again by the next launch
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw CudaError("device memory: " + std::to_string(size) + " bytes needed, " +
                        std::to_string(free) + " free",
                    code);
  }
  check_cuda(code, "cudaMalloc");
  return pointer;
}

std::string floats(int64_t count) {
  return std::to_string(count) + (count == 1 ? " float " : " floats ");
}

}  // namespace

DeviceBuffer::DeviceBuffer(int64_t count, int offset, Guards guards)
    : count_(count), front_(offset), guards_(guards) {
  if (guards == Guards::kZones) {
    front_ += GUARD;
    back_ = GUARD;
  }
  allocation_ = allocate(bytes(front_ + count_ + back_));
  if (guards == Guards::kNone) return;
  try {
    write_guards();
    fill_nan();
  } catch (...) {
    cudaFree(allocation_);
    throw;
  }
}

void DeviceBuffer::write_guards() {
  const std::vector<uint32_t> pattern = guard_pattern(front_);
  check_cuda(cudaMemcpy(allocation_, pattern.data(), bytes(front_), cudaMemcpyHostToDevice),
             "cudaMemcpy of the front guard zone");
  check_cuda(cudaMemcpy(data() + count_, pattern.data(), bytes(back_), cudaMemcpyHostToDevice),
             "cudaMemcpy of the back guard zone");
#ifndef CUDART_VERSION
  simulator::forbid_memory(allocation_, bytes(front_));
  simulator::forbid_memory(data() + count_, bytes(back_));
#endif
}

DeviceBuffer::~DeviceBuffer() {
  if (allocation_) cudaFree(allocation_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : allocation_(std::exchange(other.allocation_, nullptr)),
      count_(std::exchange(other.count_, 0)),
      front_(other.front_),
      back_(other.back_),
      guards_(other.guards_) {}

void DeviceBuffer::upload(const float* host) {
  check_cuda(cudaMemcpy(data(), host, bytes(count_), cudaMemcpyHostToDevice),
             "cudaMemcpy to the device");
}

void DeviceBuffer::download(float* host) const {
  check_cuda(cudaMemcpy(host, data(), bytes(count_), cudaMemcpyDeviceToHost),
             "cudaMemcpy from the device");
}

// Compares in pieces: new memory for a copy of all takes longer than the copy.
bool DeviceBuffer::holds(const float* host) const {
  std::vector<float> piece(static_cast<std::size_t>(std::min(count_, int64_t{1} << 22)));
  for (int64_t begin = 0; begin < count_; begin += static_cast<int64_t>(piece.size())) {
    const std::size_t size = bytes(std::min(count_ - begin, static_cast<int64_t>(piece.size())));
    check_cuda(cudaMemcpy(piece.data(), data() + begin, size, cudaMemcpyDeviceToHost),
               "cudaMemcpy from the device");
    if (std::memcmp(piece.data(), host + begin, size) != 0) return false;
  }
  return true;
}

void DeviceBuffer::fill_nan() {
  // 0xFFFFFFFF is a quiet NaN, so a plain byte fill does.
  check_cuda(cudaMemset(data(), 0xFF, bytes(count_)), "cudaMemset");
}

std::string DeviceBuffer::guard_damage() const {
  if (guards_ == Guards::kNone) return "";
  std::vector<uint32_t> front(front_), back(back_);
  check_cuda(cudaMemcpy(front.data(), allocation_, bytes(front_), cudaMemcpyDeviceToHost),
             "cudaMemcpy of the front guard zone");
  check_cuda(cudaMemcpy(back.data(), data() + count_, bytes(back_), cudaMemcpyDeviceToHost),
             "cudaMemcpy of the back guard zone");
  for (int64_t i = front_ - 1; i >= 0; --i) {  // from the buffer outwards
    if (front[i] != guard_word(i)) return "written " + floats(front_ - i) + "before the start";
  }
  for (int64_t i = 0; i < back_; ++i) {
    if (back[i] != guard_word(i)) return "written " + floats(i + 1) + "past the end";
  }
  return "";
}

}  // namespace convladder
