// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "device/mbarrier.cuh"

/// Stands in for validation/kernels/device/tma.cuh: a swizzled box of a bf16 matrix.
struct CUtensorMap {
  const std::uint16_t* data;
  int row_elements, box_rows;
};

namespace orrery::measure {

/// 64 elements of every row; the 16-byte chunk of the destination address is XORed with its row of
/// 128 bytes (CUDA driver API, CU_TENSOR_MAP_SWIZZLE_128B).
inline void tma_load(std::uint32_t destination, const CUtensorMap& map, int element, int row,
                     std::uint32_t barrier) {
  for (int r = 0; r < map.box_rows; ++r) {
    for (int e = 0; e < 64; ++e) {
      const std::uint32_t plain = destination + static_cast<std::uint32_t>(r * 128 + e * 2);
      const std::uint32_t address = plain ^ (plain >> 7 & 7) << 4;
      std::memcpy(block_of_thread->shared.data() + address,
                  map.data + (row + r) * map.row_elements + element + e, 2);
    }
  }
  emulated_barriers.change(barrier, 0, -map.box_rows * 128);
}

}  // namespace orrery::measure
