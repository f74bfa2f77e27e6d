// SPDX-License-Identifier: Apache-2.0
#include "device/tma.cuh"

#include <stdexcept>
#include <string>

#include "device/swizzle.h"
#include "device/timing.cuh"

namespace orrery::measure {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

/// Asked of the runtime, so that the program does not link the driver library and starts (to say so
/// in one line) where there is none.
Encode encoder() {
  static const Encode encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    ORRERY_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                 cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    }
    return reinterpret_cast<Encode>(function);
  }();
  return encode;
}

CUtensorMapDataType tensor_map_type(Format format) {
  switch (format) {
    case Format::kBf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case Format::kE4m3:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

}  // namespace

CUtensorMap make_tensor_map(const TileMap& tile) {
  const auto bytes = static_cast<int>(bytes_of(tile.format));
  if (!box_is_legal(tile.box_rows, tile.box_row_elements, bytes, tile.swizzled)) {
    throw std::invalid_argument("illegal TMA box: " + std::to_string(tile.box_rows) + " rows of " +
                                std::to_string(tile.box_row_elements) + " elements");
  }
  // Dimensions and boxes are given innermost first; the stride of the innermost is implied.
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(tile.row_elements),
                               static_cast<cuuint64_t>(tile.rows)};
  const cuuint64_t strides[1] = {sizes[0] * static_cast<cuuint64_t>(bytes)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(tile.box_row_elements),
                             static_cast<cuuint32_t>(tile.box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  CUtensorMap map{};
  const CUresult status =
      encoder()(&map, tensor_map_type(tile.format), 2, const_cast<void*>(tile.data), sizes, strides, box,
                steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                tile.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled: error " +
                             std::to_string(static_cast<int>(status)));
  }
  return map;
}

}  // namespace orrery::measure
