// SPDX-License-Identifier: Apache-2.0
#include "host/sweeps.h"

#include <algorithm>

namespace orrery::measure {
namespace {

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

void add_grids(std::vector<GridPoint>& points, const DeviceInfo& device, Depth depth,
               GridPoint like) {
  const std::int64_t wave = std::int64_t{device.sms} * like.occupancy;
  const std::int64_t steps = depth == Depth::kQuick ? 2 : 8;
  std::vector<std::int64_t> grids = {like.cluster};
  for (std::int64_t part = 1; part <= 5 * steps; ++part) {
    const std::int64_t grid = wave * part / steps;
    // One cluster more than a full wave shows the tail.
    for (const std::int64_t near : {grid, grid + like.cluster}) {
      grids.push_back(std::max<std::int64_t>(near / like.cluster, 1) * like.cluster);
    }
  }
  sort_unique(grids);
  for (const std::int64_t grid : grids) {
    like.grid = grid;
    points.push_back(like);
  }
}

}  // namespace

std::vector<std::int64_t> octaves(std::int64_t first, std::int64_t last, int steps_per_octave,
                                  std::int64_t granule) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t power = first; power <= last; power *= 2) {
    for (int step = 0; step < steps_per_octave; ++step) {
      const std::int64_t size = (power + power * step / steps_per_octave) / granule * granule;
      if (size > 0 && size <= last) sizes.push_back(size);
    }
  }
  sort_unique(sizes);
  return sizes;
}

std::vector<std::int64_t> cta_counts(int sms, Depth depth) {
  std::vector<std::int64_t> counts;
  const int first = depth == Depth::kQuick ? 4 : 2;
  for (std::int64_t count = 1; count < sms / 4; count *= first) counts.push_back(count);
  const int parts = depth == Depth::kQuick ? 2 : 8;
  for (int part = 1; part <= parts; ++part) {
    counts.push_back(std::max(sms * part / parts, 1));
  }
  for (int per_sm = 2; per_sm <= 4; per_sm *= 2) counts.push_back(std::int64_t{sms} * per_sm);
  sort_unique(counts);
  return counts;
}

std::vector<ChasePoint> chase_points(std::int64_t memory_bytes, Depth depth) {
  constexpr std::int64_t kLine = 128;
  const std::int64_t most = std::min(8 * kGiB, memory_bytes / 2);
  std::vector<ChasePoint> points;
  for (const std::int64_t bytes : octaves(kKiB, most, depth == Depth::kQuick ? 1 : 4, kLine)) {
    points.push_back({bytes, kLine});
  }
  const std::vector<std::int64_t> strides =
      depth == Depth::kQuick
          ? std::vector<std::int64_t>{32, 4 * kKiB, 2 * kMiB}
          : std::vector<std::int64_t>{32, 64, 256, 512, 4 * kKiB, 64 * kKiB, 2 * kMiB};
  for (const std::int64_t bytes : {16 * kKiB, 128 * kKiB, 8 * kMiB, 32 * kMiB, kGiB, 8 * kGiB}) {
    for (const std::int64_t stride : strides) {
      if (bytes <= most && bytes / stride >= 4) points.push_back({bytes, stride});
    }
  }
  return points;
}

std::vector<std::int64_t> l2_footprints(std::int64_t l2_bytes, Depth depth) {
  std::vector<std::int64_t> sizes = octaves(kMiB, 2 * l2_bytes, 1, kMiB);
  const int parts = depth == Depth::kQuick ? 4 : 16;
  for (int part = 1; part <= 2 * parts; ++part) {
    sizes.push_back(std::max(l2_bytes * part / parts / kMiB, std::int64_t{1}) * kMiB);
  }
  sort_unique(sizes);
  return sizes;
}

std::vector<GridPoint> grid_points(const DeviceInfo& device, Depth depth) {
  std::vector<GridPoint> points;
  for (const int occupancy : {1, 2, 4}) {
    for (const bool bimodal : {false, true}) {
      add_grids(points, device, depth, {0, occupancy, 1, bimodal});
    }
  }
  if (!device.at_least(9)) return points;
  for (const int cluster : {2, 4, 8, 16}) add_grids(points, device, depth, {0, 1, cluster, false});
  return points;
}

std::vector<RowPoint> row_points(Depth depth) {
  std::vector<RowPoint> points;
  const std::vector<std::int64_t> all_rows =
      depth == Depth::kQuick
          ? std::vector<std::int64_t>{1, 132, 1024, 16384}
          : std::vector<std::int64_t>{1, 16, 66, 132, 264, 528, 1024, 4096, 16384, 65536};
  const std::vector<int> all_cols = depth == Depth::kQuick
                                        ? std::vector<int>{256, 2048, 8192}
                                        : std::vector<int>{256, 512, 1024, 2048, 4096, 8192, 16384};
  for (const std::int64_t rows : all_rows) {
    for (const int cols : all_cols) {
      for (const bool cold : {true, false}) points.push_back({rows, cols, 1, cold});
    }
  }
  // Enough rows to fill any chip, small enough for every L2: the exponentials are the knee.
  for (const int exponentials : {2, 4, 8, 16, 32, 64}) {
    for (const int cols : all_cols) points.push_back({4096, cols, exponentials, false});
  }
  return points;
}

}  // namespace orrery::measure
