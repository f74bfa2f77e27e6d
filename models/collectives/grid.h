// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace orrery {

/// Positions of the members of a group on axes that close, of which the first is fastest.
class Grid {
 public:
  explicit Grid(std::vector<int> sizes) : sizes_(std::move(sizes)), strides_(sizes_.size(), 1) {
    for (std::size_t axis = 1; axis < sizes_.size(); ++axis)
      strides_[axis] = strides_[axis - 1] * sizes_[axis - 1];
  }

  int axes() const { return static_cast<int>(sizes_.size()); }
  int size(int axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  int members() const { return strides_.back() * sizes_.back(); }
  int coordinate(int member, int axis) const {
    return member / strides_[static_cast<std::size_t>(axis)] % size(axis);
  }
  /// The member `hops` further along an axis, which closes.
  int moved(int member, int axis, int hops) const {
    const int here = coordinate(member, axis);
    const int there = ((here + hops) % size(axis) + size(axis)) % size(axis);
    return member + (there - here) * strides_[static_cast<std::size_t>(axis)];
  }
  int steps() const { return std::accumulate(sizes_.begin(), sizes_.end(), -axes()); }

 private:
  std::vector<int> sizes_, strides_;
};

}  // namespace orrery
