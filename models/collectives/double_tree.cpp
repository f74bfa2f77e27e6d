// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/double_tree.h"

#include <algorithm>

namespace orrery {
namespace {

/// An in-order binary tree over 0..n-1 rooted at 0: the lowest set bit of a node is its height
/// above the leaves, which are the odd numbers. The parent has the next bit set, unless that is
/// beyond n.
int first_tree_parent(int node, int n) {
  if (node == 0) return DoubleTree::kNoParent;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < n ? up : node ^ bit;
}

/// The first tree mirrored (n even) or shifted by one (n odd), which turns its leaves into inner
/// nodes.
int second_tree_parent(int node, int n) {
  const auto rename = [n](int x) { return n % 2 == 0 ? n - 1 - x : (x + 1) % n; };
  const auto original = [n](int x) { return n % 2 == 0 ? n - 1 - x : (x + n - 1) % n; };
  const int parent = first_tree_parent(original(node), n);
  return parent == DoubleTree::kNoParent ? parent : rename(parent);
}

}  // namespace

DoubleTree::DoubleTree(int systems) {
  for (std::size_t tree = 0; tree < kTrees; ++tree) {
    const auto parent_of = tree == 0 ? first_tree_parent : second_tree_parent;
    for (int system = 0; system < systems; ++system) {
      parent_.at(tree).push_back(parent_of(system, systems));
      int depth = 0;
      for (int up = parent_of(system, systems); up != kNoParent; up = parent_of(up, systems))
        ++depth;
      depth_.at(tree).push_back(depth);
    }
  }
}

int DoubleTree::deepest(int tree) const {
  const std::vector<int>& depths = depth_.at(static_cast<std::size_t>(tree));
  return *std::max_element(depths.begin(), depths.end());
}

}  // namespace orrery
