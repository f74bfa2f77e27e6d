// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstdint>

#include "device/mbarrier.cuh"
#include "device/number_formats.h"

namespace orrery::measure {

/// A row-major matrix in device memory and the box of it that one TMA load brings.
struct TileMap {
  Format format = Format::kBf16;
  const void* data = nullptr;  ///< 16-byte aligned; rows follow one another without gaps
  std::int64_t rows = 0, row_elements = 0;
  int box_rows = 0, box_row_elements = 0;
  bool swizzled = false;  ///< the 128-byte swizzle of device/swizzle.h
};

/// The tensor map for a kernel's `const __grid_constant__ CUtensorMap` parameter.
/// @throws std::invalid_argument for an illegal box, std::runtime_error when the driver refuses.
CUtensorMap make_tensor_map(const TileMap& tile);

#ifdef ORRERY_HOPPER

/// Loads the box at (row, element) to `destination`; its bytes complete on `barrier`.
__device__ inline void tma_load(std::uint32_t destination, const CUtensorMap& map, int element,
                                int row, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(element), "r"(row)
      : "memory");
}

/// The same to this shared-memory offset, and barrier, of every block of the cluster in `mask`.
__device__ inline void tma_load_multicast(std::uint32_t destination, const CUtensorMap& map,
                                          int element, int row, std::uint32_t barrier,
                                          std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(element), "r"(row), "h"(mask)
      : "memory");
}

#endif

}  // namespace orrery::measure
