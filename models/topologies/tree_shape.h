// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <string>

#include "models/topologies/fabric.h"
#include "sim/units/units.h"

namespace orrery {

/// How NICs and trees of switches belong together.
struct TreeKind {
  bool leaf_per_rail = true;  ///< NIC i of every node of a group to leaf i; else one leaf a group
  bool planes = false;        ///< rails have trees of their own
};

/// Sizes of a fat tree of one to three tiers between systems.
///
/// `nodes_per_leaf_group` systems are a group. Its NICs go to one leaf switch per rail, or all to
/// one. Leaves that share spines are a pod; pods are joined by cores. Spine j of every pod is
/// linked to the same cores, so that all paths between two pods are equally long.
///
/// Counts are the smallest with which every leaf has equally many links to every spine of its pod,
/// and every spine to each of its cores: these are the published counts of NVIDIA's SuperPODs.
/// Without `switch_ports` spines and cores have as many as it takes, so that two tiers suffice.
struct TreeShape {
  int rails = 1;  ///< leaves of a group
  int packages_per_nic = 1;
  int planes = 1;  ///< trees that share no switch; rail r belongs to plane r mod planes
  int systems_per_group = 1;
  int groups = 1;
  int groups_per_pod = 1;
  int pods = 1;
  int leaf_ports = 1;       ///< ports of a leaf to NICs
  int leaf_uplinks = 0;     ///< uplinks of a leaf; 0: no spines, a plane has one leaf
  int spines = 0;           ///< spines of a pod and plane
  int spine_uplinks = 0;    ///< uplinks of a spine; 0: one pod, no cores
  int cores_per_spine = 0;  ///< cores that spine j of every pod is linked to
  BytesPerSecond port;      ///< bytes/s of a NIC
  BytesPerSecond leaf_up;   ///< bytes/s of all uplinks of a leaf
  BytesPerSecond pod_up;    ///< bytes/s of all uplinks of a pod and plane

  int leaves() const { return groups * rails; }
  int cores() const { return spines * cores_per_spine; }  ///< cores of a plane
  int switches() const { return leaves() + planes * (pods * spines + cores()); }
};

/// @throws config::ConfigError where switches have too few ports, the accelerator no NIC, or planes
///         do not divide the rails.
TreeShape tree_shape(const SystemConfig& system, const RankLayout& layout, TreeKind kind);

/// Adds the tree between systems to a topology. See ScaleOutBuilder.
std::unique_ptr<Fabric> build_tree(const SystemConfig& system, const RankLayout& layout,
                                   TreeKind kind, std::unique_ptr<Fabric> scale_up,
                                   Topology& topology);

/// Names of the switches of a tree.
class TreeNames {
 public:
  /// `shape` must outlive it.
  explicit TreeNames(const TreeShape& shape) : shape_(shape) {}

  /// A name such as "group2/leaf0".
  std::string leaf(int leaf) const {
    return fmt::format("group{}/leaf{}", leaf / shape_.rails, leaf % shape_.rails);
  }
  /// "plane3/", or nothing where there is one.
  std::string plane(int plane) const {
    return shape_.planes == 1 ? "" : fmt::format("plane{}/", plane);
  }
  /// "pod1/plane3/", without what there is one of.
  std::string pod(int pod, int plane_of_pod) const {
    return (shape_.pods == 1 ? "" : fmt::format("pod{}/", pod)) + plane(plane_of_pod);
  }
  /// A name such as "pod1/plane3/spine5".
  std::string spine(int pod_of_spine, int plane_of_spine, int spine) const {
    return fmt::format("{}spine{}", pod(pod_of_spine, plane_of_spine), spine);
  }

 private:
  const TreeShape& shape_;
};

}  // namespace orrery
