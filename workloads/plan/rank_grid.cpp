// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/rank_grid.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

bool fixes(const std::vector<GridCoordinate>& fixed, const std::string& axis) {
  return std::any_of(fixed.begin(), fixed.end(),
                     [&](const GridCoordinate& coordinate) { return coordinate.axis == axis; });
}

/// Every sum of an entry of `offsets` and a multiple of `stride` below `size` of them.
std::vector<int> spread(const std::vector<int>& offsets, int size, int stride) {
  std::vector<int> all;
  all.reserve(offsets.size() * static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    for (const int offset : offsets) all.push_back(offset + i * stride);
  }
  return all;
}

}  // namespace

RankGrid::RankGrid(std::vector<GridAxis> axes) {
  int stride = 1;
  for (GridAxis& axis : axes) {
    if (axis.size < 1 || has(axis.name))
      throw std::invalid_argument("axis '" + axis.name + "' has no ranks or is there twice");
    const int size = axis.size;
    axes_.push_back({std::move(axis), stride});
    stride *= size;
  }
}

int RankGrid::ranks() const {
  return axes_.empty() ? 1 : axes_.back().stride * axes_.back().axis.size;
}

bool RankGrid::has(std::string_view axis) const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [&](const Placed& placed) { return placed.axis.name == axis; });
}

const RankGrid::Placed& RankGrid::at(std::string_view axis) const {
  const auto found = std::find_if(axes_.begin(), axes_.end(),
                                  [&](const Placed& placed) { return placed.axis.name == axis; });
  if (found == axes_.end())
    throw std::invalid_argument("no axis '" + std::string(axis) + "' in this grid");
  return *found;
}

int RankGrid::coordinate(int rank, std::string_view axis) const {
  const Placed& placed = at(axis);
  return rank / placed.stride % placed.axis.size;
}

int RankGrid::size(std::string_view axis) const { return at(axis).axis.size; }

int RankGrid::first_at(const std::vector<GridCoordinate>& fixed) const {
  int rank = 0;
  for (const GridCoordinate& coordinate : fixed) rank += coordinate.at * at(coordinate.axis).stride;
  return rank;
}

std::vector<int> RankGrid::ranks_at(const std::vector<GridCoordinate>& fixed) const {
  std::vector<int> ranks = {first_at(fixed)};
  for (const Placed& placed : axes_) {
    if (!fixes(fixed, placed.axis.name)) ranks = spread(ranks, placed.axis.size, placed.stride);
  }
  return ranks;
}

RankGroups RankGrid::groups(const std::vector<std::string>& along,
                            const std::vector<GridCoordinate>& fixed) const {
  for (const std::string& axis : along) at(axis);
  std::vector<int> first = {first_at(fixed)}, members = {0};
  for (const Placed& placed : axes_) {
    const std::string& name = placed.axis.name;
    if (fixes(fixed, name)) continue;
    const bool is_along = std::find(along.begin(), along.end(), name) != along.end();
    std::vector<int>& offsets = is_along ? members : first;
    offsets = spread(offsets, placed.axis.size, placed.stride);
  }
  RankGroups groups(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    groups[i].reserve(members.size());
    for (const int member : members) groups[i].push_back(first[i] + member);
  }
  return groups;
}

}  // namespace orrery
