// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/residual_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

// Cross-validated on fitted GEMM rows of H200, 48 neighbours lower the error by 0.05 % at most and
// take several times as long, 16 raise it by 0.03 %. Three times the nugget changes it by less than
// 0.03 %.
constexpr std::size_t kNeighbours = 24;
constexpr double kNugget = 0.05;

using Coordinates = decltype(ResidualPoint::at);
constexpr std::size_t kDimensions = std::tuple_size_v<Coordinates>;

double squared_distance(const Coordinates& a, const Coordinates& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kDimensions; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// The axis along which points reach farthest.
std::size_t widest_axis(const MeasuredResidual* begin, const MeasuredResidual* end) {
  Coordinates low = begin->point.at, high = low;
  for (const auto* p = begin; p != end; ++p) {
    for (std::size_t i = 0; i < kDimensions; ++i) {
      low[i] = std::min(low[i], p->point.at[i]);
      high[i] = std::max(high[i], p->point.at[i]);
    }
  }
  std::size_t axis = 0;
  for (std::size_t i = 1; i < kDimensions; ++i)
    if (high[i] - low[i] > high[axis] - low[axis]) axis = i;
  return axis;
}

}  // namespace

/// The nearest points so far, nearest first; of equally far ones those that stand first.
struct ResidualTable::Nearest {
  struct Found {
    double distance2;
    std::size_t index;
  };

  const Coordinates* at = nullptr;
  std::array<Found, kNeighbours> found{};
  std::size_t count = 0;

  bool reaches(double distance2) const {
    return count < kNeighbours || distance2 <= found[count - 1].distance2;
  }
  void add(double distance2, std::size_t index) {
    const auto before = [](const Found& a, const Found& b) {
      return std::tie(a.distance2, a.index) < std::tie(b.distance2, b.index);
    };
    const Found candidate{distance2, index};
    if (count == kNeighbours && !before(candidate, found[count - 1])) return;
    std::size_t place = count < kNeighbours ? count++ : count - 1;
    for (; place > 0 && before(candidate, found[place - 1]); --place)
      found[place] = found[place - 1];
    found[place] = candidate;
  }
};

ResidualTable::ResidualTable(std::vector<MeasuredResidual> points)
    : points_(std::move(points)), axes_(points_.size()) {
  std::sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.point.part, a.point.at, a.log_ratio) <
           std::tie(b.point.part, b.point.at, b.log_ratio);
  });
  for (std::size_t begin = 0; begin < points_.size();) {
    std::size_t end = begin;
    while (end < points_.size() && points_[end].point.part == points_[begin].point.part) ++end;
    parts_.push_back({points_[begin].point.part, begin, end});
    build(begin, end);
    begin = end;
  }
}

void ResidualTable::build(std::size_t begin, std::size_t end) {
  if (end - begin <= 1) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const std::size_t axis = widest_axis(&points_[begin], &points_[begin] + (end - begin));
  const auto at = [this](std::size_t i) {
    return points_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  // A total order, so that equal coordinates end up in the same places whatever the input's order.
  std::nth_element(at(begin), at(middle), at(end), [axis](const auto& a, const auto& b) {
    return std::tie(a.point.at[axis], a.point.at, a.log_ratio) <
           std::tie(b.point.at[axis], b.point.at, b.log_ratio);
  });
  axes_[middle] = static_cast<std::uint8_t>(axis);
  build(begin, middle);
  build(middle + 1, end);
}

void ResidualTable::search(std::size_t begin, std::size_t end, Nearest& nearest) const {
  if (begin >= end) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const Coordinates& here = points_[middle].point.at;
  nearest.add(squared_distance(here, *nearest.at), middle);
  const std::size_t axis = axes_[middle];
  const double side = (*nearest.at)[axis] - here[axis];
  if (side < 0) {
    search(begin, middle, nearest);
    if (nearest.reaches(side * side)) search(middle + 1, end, nearest);
  } else {
    search(middle + 1, end, nearest);
    if (nearest.reaches(side * side)) search(begin, middle, nearest);
  }
}

ResidualEstimate ResidualTable::estimate(const ResidualPoint& at) const {
  const auto part = std::lower_bound(parts_.begin(), parts_.end(), at.part,
                                     [](const Part& p, int wanted) { return p.part < wanted; });
  if (part == parts_.end() || part->part != at.part) return {};
  Nearest nearest;
  nearest.at = &at.at;
  search(part->begin, part->end, nearest);
  // L L' = covariance of the points; with L z = covariance to `at` and L w = their ratios, the mean
  // is z'w and the variance 1 - z'z.
  std::array<std::array<double, kNeighbours>, kNeighbours> l;
  std::array<double, kNeighbours> z, w;
  ResidualEstimate estimate;
  for (std::size_t i = 0; i < nearest.count; ++i) {
    const MeasuredResidual& row = points_[nearest.found[i].index];
    z[i] = std::exp(-std::sqrt(nearest.found[i].distance2));
    w[i] = row.log_ratio;
    for (std::size_t j = 0; j <= i; ++j) {
      const Coordinates& other = points_[nearest.found[j].index].point.at;
      double rest =
          i == j ? 1 + kNugget : std::exp(-std::sqrt(squared_distance(row.point.at, other)));
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(rest) : rest / l[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) {
      z[i] -= l[i][k] * z[k];
      w[i] -= l[i][k] * w[k];
    }
    z[i] /= l[i][i];
    w[i] /= l[i][i];
    estimate.log_ratio += z[i] * w[i];
    estimate.variance -= z[i] * z[i];
  }
  return estimate;
}

}  // namespace orrery
