// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/topologies/tree_shape.h"

namespace orrery {

/// Number of the leaf switch of a rank's NIC: by group, then rail.
int tree_leaf(const RankLayout& layout, const TreeShape& shape, int rank);

/// Counts the messages of an exchange (each rank of a group to each other one) on every part of a
/// tree, in time linear in its ranks and in the links between the first and the last of them: many
/// small groups of a large machine are counted in the time of one that is as large.
///
/// With relays (PXN) a message leaves through the rank in the destination's place of its own node.
class TreeExchange {
 public:
  TreeExchange(const RankLayout& layout, const TreeShape& shape, bool relays,
               std::span<const int> group);

  struct Messages {
    double up = 0, down = 0;
  };

  /// Adds the exchanges inside systems, and the ways to the relays.
  void add_inside(const Fabric& scale_up, double bytes, std::vector<double>& loads) const;
  /// Calls `visit(rank, messages)` for the NICs that send.
  void for_each_sender(const std::function<void(int, double)>& visit) const;
  double received_from_elsewhere(int rank) const {
    return static_cast<double>(members_.size()) - system_members_[at_system(layout_.system(rank))];
  }
  /// From the first leaf that a member is on to behind the last; of pods and planes likewise.
  struct Range {
    int first = 0, end = 0;
  };
  Range leaves() const { return {groups_.first * shape_.rails, groups_.end * shape_.rails}; }
  Range pods() const { return {pods_.first * shape_.planes, pods_.end * shape_.planes}; }
  /// Between a leaf and the spines.
  Messages above_leaf(int leaf) const;
  /// Between a pod's spines and the cores of a plane; `pod_plane` counts by pod, then plane.
  Messages above_pod(int pod_plane) const;

 private:
  int leaf_of_system(int system, int rail) const {
    return system / shape_.systems_per_group * shape_.rails + rail;
  }
  int place(int rank) const { return rank % layout_.ranks_per_node; }
  // Places in the vectors, which begin with the first system, group and pod that have a member.
  std::size_t at_system(int system) const {
    return static_cast<std::size_t>(system - systems_.first);
  }
  std::size_t at_place(int system, int place) const {
    return at_system(system) * static_cast<std::size_t>(layout_.ranks_per_node) +
           static_cast<std::size_t>(place);
  }
  std::size_t at_group(int group) const { return static_cast<std::size_t>(group - groups_.first); }
  std::size_t at_leaf(int leaf) const {
    return static_cast<std::size_t>(leaf - groups_.first * shape_.rails);
  }
  std::size_t at_pod(int pod) const { return static_cast<std::size_t>(pod - pods_.first); }
  std::size_t at_pod_plane(int pod_plane) const {
    return static_cast<std::size_t>(pod_plane - pods_.first * shape_.planes);
  }
  /// Messages of one rank of that system to ranks in that place of other systems' nodes.
  double elsewhere(int system, int place) const {
    return place_members_[index(place)] - in_system_[at_place(system, place)];
  }
  void size_parts();
  void count_direct();

  const RankLayout& layout_;
  const TreeShape& shape_;
  bool relays_;
  std::vector<int> members_;  // sorted
  Range systems_, groups_, pods_;
  std::vector<double> system_members_;  // by system
  std::vector<double> place_members_;   // by place in a node, of all systems
  std::vector<double> in_system_;       // by system, then place
  std::vector<double> leaf_members_;    // by leaf
  std::vector<double> rail_members_;    // by rail
  std::vector<double> group_members_;   // by group
  std::vector<double> direct_;          // without relays: messages above each leaf
  std::vector<double> pod_members_;     // by pod
  std::vector<double> plane_members_;   // by plane
  std::vector<double> pod_plane_members_;
};

}  // namespace orrery
