// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/front.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace orrery {
namespace {

using Columns = std::vector<std::vector<double>>;

bool same(const Columns& columns, std::size_t a, std::size_t b) {
  return std::ranges::all_of(columns, [&](const auto& column) { return column[a] == column[b]; });
}

/// The point with the least sum of objectives, each over its range: one that is good in all.
std::size_t good_in_all(const Columns& columns) {
  std::vector<double> sums(columns.front().size(), 0);
  for (const auto& column : columns) {
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    const double range = *high > *low ? *high - *low : 1;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += (column[i] - *low) / range;
  }
  return static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
}

/// Points that one that is good in all does not beat in all: most need not be sorted.
std::vector<std::size_t> candidates(const Columns& columns) {
  std::vector<std::size_t> left;
  const std::size_t good = good_in_all(columns);
  for (std::size_t i = 0; i < columns.front().size(); ++i) {
    const bool beaten =
        std::ranges::all_of(columns, [&](const auto& column) { return column[good] < column[i]; });
    if (!beaten) left.push_back(i);
  }
  return left;
}

/// Points by their first objective, then the second and so on: only earlier ones can dominate.
std::vector<std::size_t> in_order(const Columns& columns) {
  std::vector<std::size_t> order = candidates(columns);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    for (const auto& column : columns)
      if (column[a] != column[b]) return column[a] < column[b];
    return a < b;
  });
  return order;
}

/// The best third objective that the points so far have with at most some second one: falling where
/// the second grows.
class Stairs {
 public:
  bool dominate(double second, double third) const {
    auto step = steps_.upper_bound(second);
    return step != steps_.begin() && std::prev(step)->second <= third;
  }
  /// A point that is not dominated.
  void add(double second, double third) {
    auto step = steps_.lower_bound(second);
    while (step != steps_.end() && step->second >= third) step = steps_.erase(step);
    steps_[second] = third;
  }

 private:
  std::map<double, double> steps_;
};

class Front {
 public:
  explicit Front(const Columns& columns) : columns_(columns) {}

  bool dominates(std::size_t point) const {
    if (columns_.size() <= 3) return stairs_.dominate(value(1, point), value(2, point));
    return std::any_of(members_.rbegin(), members_.rend(), [&](std::size_t member) {
      return std::ranges::all_of(
          columns_, [&](const auto& column) { return column[member] <= column[point]; });
    });
  }
  void add(std::size_t point) {
    if (columns_.size() <= 3) return stairs_.add(value(1, point), value(2, point));
    members_.push_back(point);
  }

 private:
  double value(std::size_t objective, std::size_t point) const {
    return objective < columns_.size() ? columns_[objective][point] : 0;
  }

  const Columns& columns_;
  Stairs stairs_;
  std::vector<std::size_t> members_;
};

/// Hypervolume of some points in the first `dimensions` objectives. Each slice of the last one lies
/// between two points that follow each other there, and has what all before it dominate.
double volume_of(const Columns& columns, const std::vector<double>& reference,
                 std::vector<std::size_t> points, std::size_t dimensions) {
  if (points.empty()) return 0;
  const auto& last = columns[dimensions - 1];
  std::ranges::sort(points, [&](std::size_t a, std::size_t b) {
    return last[a] != last[b] ? last[a] < last[b] : a < b;
  });
  if (dimensions == 1) return reference[0] - last[points.front()];
  double volume = 0;
  double least = reference[0];  // of the first objective, where two are left
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double end = i + 1 < points.size() ? last[points[i + 1]] : reference[dimensions - 1];
    least = std::min(least, columns[0][points[i]]);
    if (end == last[points[i]]) continue;
    const auto before = points.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const double area =
        dimensions == 2 ? reference[0] - least
                        : volume_of(columns, reference, {points.begin(), before}, dimensions - 1);
    volume += area * (end - last[points[i]]);
  }
  return volume;
}

}  // namespace

double hypervolume(const Columns& objectives, const std::vector<double>& reference) {
  std::vector<std::size_t> within;
  for (const std::size_t point : pareto_front(objectives)) {
    bool better = true;
    for (std::size_t i = 0; i < objectives.size(); ++i)
      better = better && objectives[i][point] < reference[i];
    if (better) within.push_back(point);
  }
  return volume_of(objectives, reference, std::move(within), objectives.size());
}

std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& objectives) {
  std::vector<std::size_t> found;
  if (objectives.empty() || objectives.front().empty()) return found;
  Front front(objectives);
  const std::vector<std::size_t> order = in_order(objectives);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool again = i > 0 && same(objectives, order[i], order[i - 1]);
    if (again) {
      if (!found.empty() && found.back() == order[i - 1]) found.push_back(order[i]);
    } else if (!front.dominates(order[i])) {
      front.add(order[i]);
      found.push_back(order[i]);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace orrery
