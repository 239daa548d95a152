#include "common/simulator/tensor_map.h"

#include <cstring>
#include <string>

#include "common/simulator/errors.h"

namespace convladder::simulator {
namespace {

constexpr uint64_t MARK = 0x70616d726f736e74;  // "tnsormap"
constexpr uint8_t ELEMENT_BYTES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool is_float(int type) { return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16; }

// What both kinds have.
CUresult encode(TensorMap& map, int type, unsigned rank, const void* tensor, const uint64_t* sizes,
                const uint64_t* strides, const uint32_t* steps, int interleave, int swizzle,
                int fill) {
  const auto address = reinterpret_cast<uint64_t>(tensor);
  if (type < 0 || type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ || rank < 1 || rank > 5 ||
      address % 16 != 0 || !sizes || !steps || (rank > 1 && !strides) || swizzle < 0 ||
      swizzle > 3 || fill < 0 || fill > 1 || (fill == 1 && !is_float(type))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  map.mark = MARK, map.tensor = address, map.rank = rank, map.element_bytes = ELEMENT_BYTES[type];
  map.swizzle = swizzle, map.fills_nan = fill;
  map.rounds_to_tf32 = type >= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  for (unsigned i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > uint64_t{1} << 32) return CUDA_ERROR_INVALID_VALUE;
    map.last[i] = static_cast<uint32_t>(sizes[i] - 1);
    if (steps[i] == 0 || steps[i] > 8) return CUDA_ERROR_INVALID_VALUE;
    map.steps[i] = steps[i];
    if (i == 0) continue;
    const uint64_t stride = strides[i - 1];
    if (stride % 16 != 0 || stride >= uint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    map.strides[i - 1] = stride;
  }
  return CUDA_SUCCESS;
}

bool fits_swizzle(const TensorMap& map) {
  const unsigned inner = map.box[0] * map.element_bytes;
  return inner % 16 == 0 && (map.swizzle == 0 || inner <= 16u << map.swizzle);
}

CUresult keep(const TensorMap& from, CUtensorMap* to) {
  if (!to || from.shared_bytes() > 227 * 1024) return CUDA_ERROR_INVALID_VALUE;
  *to = {};
  std::memcpy(to, &from, sizeof(from));
  return CUDA_SUCCESS;
}

// Walks through a copy's rows, in the order in which they lie in shared memory.
class Walk {
 public:
  Walk(const TensorMap& map, const int* at, const int* offsets) : map_(map) {
    for (int i = 0; i < map.rank; ++i) first_[i] = now_[i] = at[i];
    for (int i = 0; i < map.rank - 2 && map.is_im2col; ++i) offset_[i + 1] = offsets[i];
  }

  // Where the row begins; null outside of the tensor.
  const char* row() const {
    uint64_t address = map_.tensor;
    for (int i = 1; i < map_.rank; ++i) {
      const int64_t at = int64_t{now_[i]} + offset_[i];
      if (at < 0 || at > map_.last[i]) return nullptr;
      address += at * map_.strides[i - 1];
    }
    return reinterpret_cast<const char*>(address);
  }
  int channel() const { return now_[0]; }

  void next() {
    const int outermost = map_.rank - 1;
    for (int i = 1; i < map_.rank; ++i) {
      now_[i] += map_.steps[i];
      if (i == outermost) return;
      if (map_.is_im2col) {
        if (now_[i] <= int64_t{map_.last[i]} + map_.upper[i - 1]) return;
        now_[i] = map_.lower[i - 1];
      } else {
        if (now_[i] - first_[i] < map_.box[i]) return;
        now_[i] = first_[i];
      }
    }
  }

 private:
  const TensorMap& map_;
  int first_[5] = {}, now_[5] = {}, offset_[5] = {};
};

int64_t rows_of(const TensorMap& map) {
  if (map.is_im2col) return map.box[1];
  int64_t rows = 1;
  for (int i = 1; i < map.rank; ++i) rows *= (map.box[i] + map.steps[i] - 1) / map.steps[i];
  return rows;
}

}  // namespace

int64_t TensorMap::bytes() const { return rows_of(*this) * box[0] * element_bytes; }

const TensorMap& read_tensor_map(const void* map) {
  const auto& found = *static_cast<const TensorMap*>(map);
  if (reinterpret_cast<uint64_t>(map) % 64 == 0 && found.mark == MARK) return found;
  throw KernelError(cudaErrorIllegalInstruction, "there is no tensor map at the address given");
}

std::vector<Piece> pieces_of(const TensorMap& map, const int* at, const int* offsets) {
  if (int64_t{at[0]} * map.element_bytes % 16 != 0) {
    throw KernelError(cudaErrorIllegalInstruction,
                      "a tensor copy's innermost coordinate is no multiple of 16 bytes");
  }
  for (int i = 0; map.is_im2col && i < map.rank - 2; ++i) {
    if (at[i + 1] >= map.lower[i] && at[i + 1] <= int64_t{map.last[i + 1]} + map.upper[i]) continue;
    throw KernelError(cudaErrorIllegalInstruction,
                      "a copy of im2col begins outside of its map's bounding box");
  }
  std::vector<Piece> pieces;
  const uint32_t element = map.element_bytes, pitch = map.pitch();
  const int64_t rows = rows_of(map);
  Walk walk(map, at, offsets);
  // Elements of a row that are inside of the tensor.
  const int64_t first = std::clamp<int64_t>(-int64_t{at[0]}, 0, map.box[0]);
  const int64_t end = std::clamp<int64_t>(int64_t{map.last[0]} + 1 - at[0], first, map.box[0]);
  const auto outside = [&](uint32_t row, int64_t from, int64_t to) {
    if (from < to) {
      pieces.push_back({row * pitch + static_cast<uint32_t>(from) * element,
                        static_cast<uint32_t>(to - from) * element, nullptr});
    }
  };
  for (uint32_t row = 0; row < rows; ++row, walk.next()) {
    const char* const begin = walk.row();
    if (!begin || first == end) {
      outside(row, 0, map.box[0]);
      continue;
    }
    outside(row, 0, first);
    pieces.push_back({row * pitch + static_cast<uint32_t>(first) * element,
                      static_cast<uint32_t>(end - first) * element,
                      begin + (at[0] + first) * element});
    outside(row, end, map.box[0]);
  }
  return pieces;
}

}  // namespace convladder::simulator

using namespace convladder::simulator;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* tensor, const cuuint64_t* sizes, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  TensorMap made{};
  if (const CUresult error = encode(made, type, rank, tensor, sizes, strides, steps, interleave,
                                    swizzle, fill)) {
    return error;
  }
  for (unsigned i = 0; i < rank; ++i) {
    if (!box || box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
    made.box[i] = box[i];
  }
  return fits_swizzle(made) ? keep(made, map) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* tensor, const cuuint64_t* sizes, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t* steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  TensorMap made{};
  if (const CUresult error = encode(made, type, rank, tensor, sizes, strides, steps, interleave,
                                    swizzle, fill)) {
    return error;
  }
  if (rank < 3 || !lower || !upper || channels == 0 || channels > 256 || pixels == 0 ||
      pixels > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  for (unsigned i = 0; i < rank - 2; ++i) {
    for (const int corner : {lower[i], upper[i]}) {
      if (corner < -most || corner >= most) return CUDA_ERROR_INVALID_VALUE;
    }
    made.lower[i] = static_cast<int16_t>(lower[i]);
    made.upper[i] = static_cast<int16_t>(upper[i]);
    if (int64_t{made.last[i + 1]} + upper[i] < lower[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  made.is_im2col = 1, made.box[0] = channels, made.box[1] = pixels;
  return fits_swizzle(made) ? keep(made, map) : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  if (!name || !function) return set_last_error(cudaErrorInvalidValue);
  *function = nullptr;
  if (std::strcmp(name, "cuTensorMapEncodeTiled") == 0) {
    *function = reinterpret_cast<void*>(cuTensorMapEncodeTiled);
  } else if (std::strcmp(name, "cuTensorMapEncodeIm2col") == 0) {
    *function = reinterpret_cast<void*>(cuTensorMapEncodeIm2col);
  }
  if (result) {
    *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return *function ? cudaSuccess : set_last_error(cudaErrorSymbolNotFound);
}
