// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

namespace orrery {

/// Two complementary binary trees over systems 0..n-1, each for one half of the data: a system that
/// is an inner node of one is a leaf of the other, so that none sends more than twice the data
/// (Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
/// Parallel Computing 2009).
class DoubleTree {
 public:
  static constexpr int kTrees = 2;
  static constexpr int kNoParent = -1;

  explicit DoubleTree(int systems);

  int systems() const { return static_cast<int>(parent_[0].size()); }
  int parent(int tree, int system) const { return at(parent_, tree, system); }
  /// Steps from a system to the root.
  int depth(int tree, int system) const { return at(depth_, tree, system); }
  /// Depth of the deepest system.
  int deepest(int tree) const;

 private:
  using PerTree = std::array<std::vector<int>, kTrees>;
  static int at(const PerTree& values, int tree, int system) {
    return values.at(static_cast<std::size_t>(tree))[static_cast<std::size_t>(system)];
  }

  PerTree parent_, depth_;
};

}  // namespace orrery
