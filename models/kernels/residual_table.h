// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/kernels/device/family.h"

namespace orrery {

/// log(measured / predicted) of one measured kernel.
struct MeasuredResidual {
  ResidualPoint point;
  double log_ratio = 0;
};

/// What measured kernels tell about one that was not measured.
struct ResidualEstimate {
  double log_ratio = 0;
  /// Variance of the logarithm over that of a kernel nothing is known of: near 0 at measured ones,
  /// 1 far from all.
  double variance = 1;
};

/// Measured ratios, interpolated by simple kriging with mean 0 (a Gaussian process; Rasmussen and
/// Williams, Gaussian Processes for Machine Learning, 2006, chapter 2) from the nearest points of
/// the same part: covariance exp(-distance), and a nugget for what two measurements of one kernel
/// differ. Far from all points the ratio is 1. The order of the points does not matter. Serves one
/// thread.
class ResidualTable {
 public:
  ResidualTable() = default;
  explicit ResidualTable(std::vector<MeasuredResidual> points);

  bool empty() const { return points_.empty(); }
  /// Some microseconds: a search, and a system of kNeighbours equations. Points that were asked for
  /// lately are remembered, as the kernels that are smaller than others are asked for with each.
  ResidualEstimate estimate(const ResidualPoint& at) const;
  double log_ratio(const ResidualPoint& at) const { return estimate(at).log_ratio; }

 private:
  /// Points of one part, as a k-d tree in an array: the middle of a range splits it.
  struct Part {
    int part = 0;
    std::size_t begin = 0, end = 0;
  };
  struct Nearest;
  // Cross-validated on fitted GEMM rows of H200, 48 neighbours lower the error by 0.05 % at most
  // and take several times as long, 16 raise it by 0.03 %.
  static constexpr std::size_t kNeighbours = 24;
  /// What the neighbours of a kernel tell, whatever its distance to them.
  struct Solved {
    std::size_t count = 0;
    std::array<std::size_t, kNeighbours> index{};  ///< neighbours, the nearest first
    std::array<std::array<double, kNeighbours>, kNeighbours> l;
    std::array<double, kNeighbours> w;
  };

  void build(std::size_t begin, std::size_t end);
  void search(std::size_t begin, std::size_t end, double away2, Nearest& nearest) const;
  void solve(Solved& solved) const;
  const Solved& solved(const Nearest& nearest) const;
  ResidualEstimate estimated(const ResidualPoint& at) const;

  std::vector<MeasuredResidual> points_;
  std::vector<std::uint8_t> axes_;  ///< axis along which the point at this place splits its range
  std::vector<Part> parts_;
  mutable std::vector<Solved> solved_;  ///< the last ones, by the hash of their neighbours
  struct Asked {
    ResidualPoint at;
    std::optional<ResidualEstimate> estimate;
  };
  mutable std::vector<Asked> asked_;  ///< the last points, by their hash
};

}  // namespace orrery
