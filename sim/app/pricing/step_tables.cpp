// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_tables.h"

#include <algorithm>
#include <bit>
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

RowTable::Cell RowTable::cell(std::int64_t rows, std::int64_t width) const {
  const std::int64_t first = (rows - 1) / width * width;
  if (!steps_.parity) return {first + 1, first + width, width};
  const std::int64_t low = first + (rows % 2 == 0 ? 2 : 1);
  return {low, low + width - 2, width};
}

/// The widest cell that is worth a look.
std::int64_t RowTable::root_width(std::int64_t rows) const {
  std::int64_t width = steps_.widest;
  while (width > steps_.width && 8 * width > rows - 1) width /= 2;
  return width;
}

RowTable::Shape& RowTable::shape(const Cell& cell) {
  const auto level =
      static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(cell.width)));
  if (level >= shapes_.size()) shapes_.resize(level + 1);
  std::vector<Shape>& shapes = shapes_[level];
  const auto index = static_cast<std::size_t>(cell.low);
  if (index >= shapes.size())
    shapes.resize(std::max(index + 1, 2 * shapes.size()), Shape::kUnknown);
  return shapes[index];
}

bool RowTable::on_line(const Cell& cell, std::int64_t rows) {
  const double share =
      static_cast<double>(rows - cell.low) / static_cast<double>(cell.high - cell.low);
  const double line = (1 - share) * at(cell.low).at[0].time + share * at(cell.high).at[0].time;
  const double real = at(rows).at[0].time;
  return std::abs(line - real) <= steps_.tolerance * real;
}

bool RowTable::straight(const Cell& cell) {
  Shape known = shape(cell);
  if (known == Shape::kUnknown) {
    const std::int64_t step = steps_.parity ? 2 : 1;
    const std::int64_t rows = (cell.high - cell.low) / step + 1;
    const std::int64_t upper = cell.low + rows / 2 * step;  // the first row of the upper half
    bool line = on_line(cell, upper - step) && on_line(cell, upper);
    for (const std::int64_t quarter : {rows / 4, rows * 3 / 4})
      line = line && on_line(cell, cell.low + quarter * step);
    known = shape(cell) = line ? Shape::kStraight : Shape::kRough;
  }
  return known == Shape::kStraight;
}

/// The widest cell of some rows that is straight, if there is one.
std::optional<RowTable::Cell> RowTable::straight_cell(std::int64_t rows) {
  for (std::int64_t width = root_width(rows); width >= steps_.width; width /= 2)
    if (const Cell wide = cell(rows, width); straight(wide)) return wide;
  return std::nullopt;
}

bool RowTable::add(std::int64_t rows, double weight, PriceTerms& terms) {
  const std::size_t before = entries_.size();
  std::optional<Cell> between;
  if (rows > steps_.exact) between = straight_cell(rows);
  // Who needs the even rows of a cell will soon need the odd ones.
  if (between && steps_.parity && entries_.size() != before)
    straight(cell(rows % 2 == 0 ? rows - 1 : rows + 1, between->width));
  if (!between) {
    terms.push_back({&at(rows), weight});
    return entries_.size() == before;
  }
  const double share =
      static_cast<double>(rows - between->low) / static_cast<double>(between->high - between->low);
  if (share < 1) terms.push_back({&at(between->low), weight * (1 - share)});
  if (share > 0) terms.push_back({&at(between->high), weight * share});
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
  const bool known = look(rows, point, weight, terms);
  if (!known) look_around(rows, point);
  return known;
}

/// The cells that a point moves to: up along the first figure, both ways along the second.
void ColumnTable::look_around(std::int64_t rows, const Point& point) {
  const auto look_beside = [&](std::size_t figure, std::size_t from, std::size_t to) {
    const std::size_t node = axes_.at(figure).place(point.at(figure)).node;
    if (node + from < 1 || node + to > axes_.at(figure).size()) return;
    Point beside = point;
    beside.at(figure) =
        (axes_.at(figure).node(node + from - 1) + axes_.at(figure).node(node + to - 1)) / 2;
    PriceTerms none;
    look(rows, beside, 1, none);
  };
  look_beside(0, 2, 3);
  look_beside(1, 0, 1);
  look_beside(1, 2, 3);
}

bool ColumnTable::look(std::int64_t rows, const Point& point, double weight, PriceTerms& terms) {
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

}  // namespace orrery
