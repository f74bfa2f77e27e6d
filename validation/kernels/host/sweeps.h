// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "device/random.h"
#include "host/measurement.h"

namespace orrery::measure {

inline constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

/// Random, but always the same order, so that a sweep cut short by time still spreads over
/// everything: Fisher-Yates by a generator of our own, as std::shuffle differs between standard
/// libraries.
template <class T>
void shuffle(std::vector<T>& items, std::uint64_t order) {
  for (std::size_t last = items.size(); last > 1; --last)
    std::swap(items[last - 1], items[random_bits(order, last) % last]);
}

/// first, 2*first, 4*first, ... up to `last`, with steps_per_octave - 1 sizes evenly between two
/// powers, each a multiple of `granule`; without repeats.
std::vector<std::int64_t> octaves(std::int64_t first, std::int64_t last, int steps_per_octave,
                                  std::int64_t granule);

/// Thread blocks from one to four per multiprocessor: powers of two, then quarters of the chip, so
/// that the knee where the memory saturates is seen. Ascending, without repeats.
std::vector<std::int64_t> cta_counts(int sms, Depth depth);

/// One pointer chase: a random cycle over the elements at multiples of `stride` in `bytes`.
struct ChasePoint {
  std::int64_t bytes = 0, stride = 0;
};
/// Footprints at a stride of one line, then strides at footprints of each level of the hierarchy.
/// None is above `memory_bytes` / 2.
std::vector<ChasePoint> chase_points(std::int64_t memory_bytes, Depth depth);

/// Footprints from 1 MiB to beyond the L2, dense where its halves and its whole end.
std::vector<std::int64_t> l2_footprints(std::int64_t l2_bytes, Depth depth);

/// The part of a footprint of `chunks` that one thread block of the L2 kernel reads: `count` chunks
/// from `first` on, around the end. All blocks together sweep over the footprint at the same speed,
/// and a chunk that one block has read is read next by another, after all the rest.
struct Window {
  std::uint32_t first = 0, count = 0;
};
ORRERY_HD constexpr Window window_of(std::uint32_t block, std::uint32_t blocks,
                                     std::uint32_t chunks, std::uint32_t least) {
  const auto first = static_cast<std::uint32_t>(std::uint64_t{block} * chunks / blocks);
  const std::uint32_t twice = (2 * chunks + blocks - 1) / blocks;
  return {first, twice > least ? twice : least};
}

/// One grid of the scheduling kernel.
struct GridPoint {
  std::int64_t grid = 0;
  int occupancy = 1;  ///< thread blocks per multiprocessor
  int cluster = 1;    ///< thread blocks per cluster; divides the grid
  bool bimodal = false;
};
/// Grids around 1-5 waves for each occupancy and cluster size; clusters only with capability 9.
std::vector<GridPoint> grid_points(const DeviceInfo& device, Depth depth);

/// One matrix of the row kernel.
struct RowPoint {
  std::int64_t rows = 0;
  int cols = 0;
  int exponentials = 1;  ///< exponentials per element
  bool cold = true;      ///< rotated beyond the L2, or always the same matrix
};
std::vector<RowPoint> row_points(Depth depth);

}  // namespace orrery::measure
