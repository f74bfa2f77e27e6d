// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/host_device.h"

/// Address arithmetic of Hopper's tiles: a tile is rows of 128 bytes (64 bf16, 128 fp8, 32 tf32)
/// along K, in the 128-byte swizzle that TMA writes and wgmma reads (PTX ISA, "Asynchronous
/// Warpgroup Level Matrix Shared Memory Layout" and "Tensor swizzling modes").
namespace orrery::measure {

constexpr int kTileRowBytes = 128;
constexpr int kSwizzlePeriodBytes = 1024;  ///< 8 rows; a tile starts at a multiple of it
constexpr int kStepBytes = 32;  ///< bytes of K that one wgmma consumes, for every precision
constexpr int kStepsPerTile = kTileRowBytes / kStepBytes;

/// The 16-byte chunk (address bits 4-6) is XORed with the row modulo 8 (bits 7-9).
ORRERY_HD constexpr std::uint32_t swizzle_128b(std::uint32_t offset) {
  return offset ^ ((offset >> 3) & 0x70u);
}

/// Byte offset in the tile of byte `byte` of row `row`.
ORRERY_HD constexpr std::uint32_t tile_offset(std::uint32_t row, std::uint32_t byte) {
  return swizzle_128b(row * kTileRowBytes + byte);
}

/// Matrix descriptor of a K-major tile in the 128-byte swizzle (PTX ISA, "Matrix Descriptor
/// Format"): start address / 16 in bits 0-13, leading byte offset / 16 in 16-29 (unused by swizzled
/// K-major layouts), stride byte offset / 16 in 32-45: the distance of two groups of 8 rows;
/// swizzle mode 1 (128 bytes) in 62-63. The base offset (49-51) is 0: the tile is aligned to its
/// period.
ORRERY_HD constexpr std::uint64_t matrix_descriptor(std::uint32_t shared_address) {
  const std::uint64_t start = (shared_address & 0x3FFFFu) >> 4;
  const std::uint64_t leading = 1;
  const std::uint64_t stride = kSwizzlePeriodBytes >> 4;
  return start | leading << 16 | stride << 32 | std::uint64_t{1} << 62;
}

/// Descriptor of K step `step` of the same tile: the hardware swizzles computed addresses, so that
/// a step inside the 128-byte row only moves the start address.
ORRERY_HD constexpr std::uint64_t descriptor_of_step(std::uint64_t tile, int step) {
  return tile + static_cast<std::uint64_t>(step * kStepBytes / 16);
}

/// Place of accumulator register i (of N / 2) of a thread in the 64 x N result of a warpgroup (PTX
/// ISA, "Register Fragments and Shared Memory Matrix Layouts", D of wgmma .m64nNk*).
ORRERY_HD constexpr int accumulator_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2);
}
ORRERY_HD constexpr int accumulator_column(int thread, int i) {
  return 8 * (i / 4) + 2 * (thread % 4) + i % 2;
}

/// Place of 32-bit register i (of 4) of A in the 64 rows x 32 bytes of one step; in bytes it is the
/// same for bf16, tf32 and fp8.
ORRERY_HD constexpr int fragment_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 2);
}
ORRERY_HD constexpr int fragment_byte(int thread, int i) { return 4 * (thread % 4) + 16 * (i / 2); }

/// A TMA box of `rows` rows of `row_elements` (CUDA driver API, cuTensorMapEncodeTiled): at most
/// 256 in each dimension, the inner one a multiple of 16 bytes and within the swizzle's span.
constexpr bool box_is_legal(int rows, int row_elements, int element_bytes, bool swizzled) {
  const int row_bytes = row_elements * element_bytes;
  return rows >= 1 && rows <= 256 && row_elements >= 1 && row_elements <= 256 &&
         row_bytes % 16 == 0 && (!swizzled || row_bytes <= kTileRowBytes);
}

/// Byte offset of 16-byte chunk `chunk` of row `row` in a tile that mma.sync kernels load with
/// cp.async and read with ldmatrix: XORing the chunk with the row modulo 8 puts the 8 rows of an
/// 8 x 8 matrix into different banks. Rows have a multiple of 8 chunks.
ORRERY_HD constexpr std::uint32_t chunk_offset(int row, int chunk, int chunks_per_row) {
  return static_cast<std::uint32_t>((row * chunks_per_row + (chunk ^ (row & 7))) * 16);
}

/// The phase parity of the n-th use (from 0) of a slot: consumers wait for it on the full barrier;
/// the producer of use n waits for that of use n - 1 on the empty one.
ORRERY_HD constexpr std::uint32_t phase_parity(int use) {
  return static_cast<std::uint32_t>(use & 1);
}

}  // namespace orrery::measure
