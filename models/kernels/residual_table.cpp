// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/residual_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

constexpr double kSumRounding = 1e-9;  ///< share that sums of squares are off by at most
constexpr std::size_t kKept = 32;      ///< solved systems that a table keeps
constexpr std::size_t kAsked = 4096;   ///< estimates that it keeps
// Three times as much changes the error on fitted GEMM rows of H200 by less than 0.03 %.
constexpr double kNugget = 0.05;

using Coordinates = decltype(ResidualPoint::at);
constexpr std::size_t kDimensions = std::tuple_size_v<Coordinates>;

double squared_distance(const Coordinates& a, const Coordinates& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kDimensions; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

std::size_t hash_of(const ResidualPoint& point) {
  auto state = static_cast<std::uint64_t>(point.part);
  for (const double coordinate : point.at)
    state = (state ^ std::bit_cast<std::uint64_t>(coordinate)) * 0x9e3779b97f4a7c15 ^ state >> 29;
  return state >> 32;
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
  Coordinates away{};  ///< squares of how far the range that is searched is away along each axis
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

void ResidualTable::search(std::size_t begin, std::size_t end, double away2,
                           Nearest& nearest) const {
  if (begin >= end) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const Coordinates& here = points_[middle].point.at;
  nearest.add(squared_distance(here, *nearest.at), middle);
  const std::size_t axis = axes_[middle];
  const double side = (*nearest.at)[axis] - here[axis];
  const bool below = side < 0;
  search(below ? begin : middle + 1, below ? middle : end, away2, nearest);
  // The other half begins at `here` along this axis; along the others it is no nearer than its
  // range.
  const double square = side * side, before = nearest.away[axis];
  const double further = away2 - before + square;
  if (!nearest.reaches(further * (1 - kSumRounding))) return;
  nearest.away[axis] = square;
  search(below ? middle + 1 : begin, below ? end : middle, further, nearest);
  nearest.away[axis] = before;
}

/// L L' = covariance of the points; L w = their ratios.
void ResidualTable::solve(Solved& solved) const {
  auto& [count, index, l, w] = solved;
  for (std::size_t i = 0; i < count; ++i) {
    const MeasuredResidual& row = points_[index[i]];
    w[i] = row.log_ratio;
    for (std::size_t j = 0; j <= i; ++j) {
      const Coordinates& other = points_[index[j]].point.at;
      double rest =
          i == j ? 1 + kNugget : std::exp(-std::sqrt(squared_distance(row.point.at, other)));
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(rest) : rest / l[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) w[i] -= l[i][k] * w[k];
    w[i] /= l[i][i];
  }
}

/// Near kernels have the same neighbours.
const ResidualTable::Solved& ResidualTable::solved(const Nearest& nearest) const {
  if (solved_.empty()) solved_.resize(kKept);
  std::array<std::size_t, kNeighbours> index{};
  std::uint64_t state = nearest.count;
  for (std::size_t i = 0; i < nearest.count; ++i) {
    index[i] = nearest.found[i].index;
    state = (state ^ index[i]) * 0x9e3779b97f4a7c15;
  }
  Solved& kept = solved_[(state >> 32) % kKept];
  if (kept.count != nearest.count || kept.index != index) {
    kept.count = nearest.count;
    kept.index = index;
    solve(kept);
  }
  return kept;
}

ResidualEstimate ResidualTable::estimate(const ResidualPoint& at) const {
  if (asked_.empty()) asked_.resize(kAsked);
  auto& [point, known] = asked_[hash_of(at) % kAsked];
  if (!known || point.part != at.part || point.at != at.at) {
    point = at;
    known = estimated(at);
  }
  return *known;
}

ResidualEstimate ResidualTable::estimated(const ResidualPoint& at) const {
  const auto part = std::lower_bound(parts_.begin(), parts_.end(), at.part,
                                     [](const Part& p, int wanted) { return p.part < wanted; });
  if (part == parts_.end() || part->part != at.part) return {};
  Nearest nearest;
  nearest.at = &at.at;
  search(part->begin, part->end, 0, nearest);
  // With L z = covariance to `at`, the mean is z'w and the variance 1 - z'z.
  const auto& [count, index, l, w] = solved(nearest);
  std::array<double, kNeighbours> z;
  ResidualEstimate estimate;
  for (std::size_t i = 0; i < count; ++i) {
    z[i] = std::exp(-std::sqrt(nearest.found[i].distance2));
    for (std::size_t k = 0; k < i; ++k) z[i] -= l[i][k] * z[k];
    z[i] /= l[i][i];
    estimate.log_ratio += z[i] * w[i];
    estimate.variance -= z[i] * z[i];
  }
  return estimate;
}

}  // namespace orrery
