// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {

const StepPrice& RowTable::at(std::int64_t rows) {
  const auto index = static_cast<std::size_t>(rows);
  if (index >= known_.size()) known_.resize(std::max(index + 1, 2 * known_.size()), -1);
  if (known_[index] < 0) {
    entries_.push_back(evaluate_(rows));
    known_[index] = static_cast<std::int32_t>(entries_.size() - 1);
  }
  return entries_[static_cast<std::size_t>(known_[index])];
}

bool RowTable::straight(std::int64_t low, std::int64_t high) {
  const auto index = static_cast<std::size_t>(low);
  if (index >= cells_.size()) cells_.resize(std::max(index + 1, 2 * cells_.size()), Cell::kUnknown);
  if (cells_[index] == Cell::kUnknown) {
    const std::int64_t half = (high - low) / 2;
    const std::int64_t middle = low + (steps_.parity ? half / 2 * 2 : half);
    const double share = static_cast<double>(middle - low) / static_cast<double>(high - low);
    const double line = (1 - share) * at(low).at[0].time + share * at(high).at[0].time;
    const double real = at(middle).at[0].time;
    cells_[index] = std::abs(line - real) <= kTolerance * real ? Cell::kStraight : Cell::kRough;
  }
  return cells_[index] == Cell::kStraight;
}

bool RowTable::add(std::int64_t rows, double weight, PriceTerms& terms) {
  const std::size_t before = entries_.size();
  if (rows <= steps_.exact) {
    terms.push_back({&at(rows), weight});
    return entries_.size() == before;
  }
  // The ends of the cell; with parity, of those that are even or odd as `rows` is.
  const std::int64_t first = (rows - 1) / steps_.width * steps_.width;
  const std::int64_t low = first + (steps_.parity && rows % 2 == 0 ? 2 : 1);
  const std::int64_t high = steps_.parity ? low + steps_.width - 2 : first + steps_.width;
  const bool is_straight = straight(low, high);
  // Who needs the even rows of a cell will soon need the odd ones.
  if (steps_.parity && entries_.size() != before) {
    const std::int64_t other = 2 * first + 3 - low;
    straight(other, other + steps_.width - 2);
  }
  if (!is_straight) {
    terms.push_back({&at(rows), weight});
    return entries_.size() == before;
  }
  const double share = static_cast<double>(rows - low) / static_cast<double>(high - low);
  if (share < 1) terms.push_back({&at(low), weight * (1 - share)});
  if (share > 0) terms.push_back({&at(high), weight * share});
  return entries_.size() == before;
}

/// Outside of the nodes: the nearest.
TableAxis::Place TableAxis::place(double value) const {
  const auto above = std::upper_bound(nodes_.begin(), nodes_.end(), value);
  if (above == nodes_.begin()) return {};
  const auto node = static_cast<std::size_t>(above - nodes_.begin()) - 1;
  if (above == nodes_.end()) return {node, 0};
  return {node, (value - nodes_[node]) / (nodes_[node + 1] - nodes_[node])};
}

ColumnTable::ColumnTable(std::array<TableAxis, 2> axes, RowSteps steps, Evaluate evaluate)
    : axes_(std::move(axes)),
      steps_(steps),
      evaluate_(std::move(evaluate)),
      known_(axes_[0].size() * axes_[1].size(), -1) {}

RowTable& ColumnTable::column(std::size_t first, std::size_t second) {
  std::int32_t& known = known_[first * axes_[1].size() + second];
  if (known < 0) {
    const Point point = {axes_[0].node(first), axes_[1].node(second)};
    columns_.emplace_back([this, point](std::int64_t rows) { return evaluate_(rows, point); },
                          steps_);
    known = static_cast<std::int32_t>(columns_.size() - 1);
  }
  return columns_[static_cast<std::size_t>(known)];
}

bool ColumnTable::add(std::int64_t rows, const Point& point, double weight, PriceTerms& terms) {
  const std::array<TableAxis::Place, 2> at = {axes_[0].place(point[0]), axes_[1].place(point[1])};
  bool known = true;
  for (const std::size_t first : {0U, 1U}) {
    const double of_first = weight * (first == 1 ? at[0].weight : 1 - at[0].weight);
    for (const std::size_t second : {0U, 1U}) {
      const double share = of_first * (second == 1 ? at[1].weight : 1 - at[1].weight);
      if (!(share > 0)) continue;
      known = column(at[0].node + first, at[1].node + second).add(rows, share, terms) && known;
    }
  }
  return known;
}

std::size_t ColumnTable::entries() const {
  std::size_t entries = 0;
  for (const RowTable& column : columns_) entries += column.entries();
  return entries;
}

}  // namespace orrery
