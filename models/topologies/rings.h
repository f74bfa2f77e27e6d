// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace orrery {

/// Orders in which rings pass the members 0..n-1 of a group; each ring carries an equal share.
using RingOrders = std::vector<std::vector<int>>;

/// Parallel links between the members of a group, the same both ways.
class LinkTable {
 public:
  explicit LinkTable(int members);

  int members() const { return members_; }
  int at(int a, int b) const { return links_[index(a, b)]; }
  /// Sets both ways.
  void set(int a, int b, int links);
  /// Links of a member to all others.
  int degree(int member) const;

 private:
  std::size_t index(int a, int b) const;

  int members_;
  std::vector<int> links_;
};

/// Largest group whose wiring is searched.
inline constexpr int kMostRingMembers = 16;

/// Rings that pass every member over direct links only and use each link at most once each way, as
/// many as are found; every one comes with its reverse. Libraries search them for the same reason
/// (NCCL's graph search; DGX-1 has 3 both ways, NVIDIA WP-08437).
///
/// Where each member has equally many links to each other one, n-1 cycles that use every link twice
/// by half: rotations of the zigzag 0, 1, -1, 2, -2, ... that Walecki's decomposition of complete
/// graphs is made of (Alspach, "The wonderful Walecki construction", 2008). Elsewhere a depth-first
/// search, exact unless it takes more than 200,000 steps; then the most that it has seen. Empty
/// below 3 and above kMostRingMembers members, and where rank order (0, 1, 2, ...) carries as much.
RingOrders disjoint_rings(const LinkTable& links);

}  // namespace orrery
