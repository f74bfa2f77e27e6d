// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {

/// The first and last number of rows of a cell that are even or odd as `rows` is.
RowTable::Ends RowTable::ends_of(std::int64_t rows, std::int64_t width) {
  const std::int64_t before = (rows - 1) / width * width;
  const std::int64_t low = before + (rows % 2 == 0 ? 2 : 1);
  return {low, low + width - 2};
}

const StepPrice& RowTable::at(std::int64_t rows) {
  const auto index = static_cast<std::size_t>(rows);
  if (index >= known_.size()) known_.resize(std::max(index + 1, 2 * known_.size()), -1);
  if (known_[index] < 0) {
    entries_.push_back(evaluate_(rows));
    known_[index] = static_cast<std::int32_t>(entries_.size() - 1);
  }
  return entries_[static_cast<std::size_t>(known_[index])];
}

RowTable::Cell& RowTable::cell(std::size_t level, std::int64_t rows) {
  std::vector<Cell>& cells = cells_.at(level);
  const auto index = static_cast<std::size_t>((rows - 1) / kWidths.at(level) * 2 + rows % 2);
  if (index >= cells.size()) cells.resize(std::max(index + 1, 2 * cells.size()), Cell::kUnknown);
  return cells[index];
}

RowTable::Cell RowTable::judged(Ends ends) {
  const std::int64_t quarter = (ends.high - ends.low) / 4 * 2;  // keeps even even
  const std::int64_t middle = ends.low + quarter;
  const double low = at(ends.low).at[0].time, high = at(ends.high).at[0].time;
  const double share = static_cast<double>(middle - ends.low) /
                       static_cast<double>(ends.high - ends.low);
  const double line = low + (high - low) * share;
  const double real = at(middle).at[0].time;
  return std::abs(real - line) <= kTolerance * real ? Cell::kStraight : Cell::kRough;
}

bool RowTable::add(std::int64_t rows, double weight, PriceTerms& terms) {
  const std::size_t before = entries_.size();
  if (rows > kExact) {
    for (std::size_t level = 0; level < kWidths.size(); ++level) {
      const Ends ends = ends_of(rows, kWidths.at(level));
      if (cell(level, rows) == Cell::kUnknown) {
        const Cell found = judged(ends);
        cell(level, rows) = found;
      }
      if (cell(level, rows) != Cell::kStraight) continue;
      const double share =
          static_cast<double>(rows - ends.low) / static_cast<double>(ends.high - ends.low);
      terms.push_back({&at(ends.low), weight * (1 - share)});
      terms.push_back({&at(ends.high), weight * share});
      return entries_.size() == before;
    }
  }
  terms.push_back({&at(rows), weight});
  return entries_.size() == before;
}

/// Outside of the nodes: the nearest.
GridAxis::Place GridAxis::place(double value) const {
  const auto above = std::upper_bound(nodes_.begin(), nodes_.end(), value);
  if (above == nodes_.begin()) return {};
  const auto node = static_cast<std::size_t>(above - nodes_.begin()) - 1;
  if (above == nodes_.end()) return {node, 0};
  return {node, (value - nodes_[node]) / (nodes_[node + 1] - nodes_[node])};
}

GridTable::GridTable(std::array<GridAxis, 3> axes, Evaluate evaluate)
    : axes_(std::move(axes)),
      evaluate_(std::move(evaluate)),
      known_(axes_[0].size() * axes_[1].size() * axes_[2].size(), -1) {}

const StepPrice& GridTable::at(const std::array<std::size_t, 3>& node) {
  const std::size_t index = (node[0] * axes_[1].size() + node[1]) * axes_[2].size() + node[2];
  if (known_[index] < 0) {
    entries_.push_back(
        evaluate_({axes_[0].node(node[0]), axes_[1].node(node[1]), axes_[2].node(node[2])}));
    known_[index] = static_cast<std::int32_t>(entries_.size() - 1);
  }
  return entries_[static_cast<std::size_t>(known_[index])];
}

bool GridTable::add(const Point& point, double weight, PriceTerms& terms) {
  constexpr std::size_t kCorners = 8;
  const std::size_t before = entries_.size();
  std::array<GridAxis::Place, 3> places;
  for (std::size_t axis = 0; axis < 3; ++axis) places[axis] = axes_[axis].place(point[axis]);
  for (std::size_t corner = 0; corner < kCorners; ++corner) {
    std::array<std::size_t, 3> node{};
    double share = weight;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::size_t next = corner >> axis & 1U;
      node[axis] = places[axis].node + next;
      share *= next == 1 ? places[axis].weight : 1 - places[axis].weight;
    }
    if (share > 0) terms.push_back({&at(node), share});
  }
  return entries_.size() == before;
}

}  // namespace orrery
