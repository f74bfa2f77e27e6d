// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/tree_shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

int round_up(int count, int size) { return (count + size - 1) / size; }

/// The smallest divisor of `links` that is at least `least`, so that all switches get equally many;
/// 0 where there is none.
int equal_shares(int links, double least) {
  for (int count = 1; count <= links; ++count) {
    if (links % count == 0 && count >= least - 1e-9) return count;
  }
  return 0;
}

class TreePlanner {
 public:
  TreePlanner(const SystemConfig& system, const RankLayout& layout, TreeKind kind)
      : name_(system.name), config_(system.scale_out) {
    shape_.packages_per_nic = system.packages_per_nic();
    const int ranks_per_nic = layout.dies * shape_.packages_per_nic;
    const int nics = layout.ranks_per_node / ranks_per_nic;
    shape_.rails = kind.leaf_per_rail ? nics : 1;
    if (kind.planes) shape_.planes = config_.planes > 0 ? config_.planes : shape_.rails;
    if (shape_.rails % shape_.planes != 0) {
      fail(fmt::format("planes ({}) must divide the NICs of a node ({})", shape_.planes,
                       shape_.rails));
    }
    shape_.systems_per_group = config_.nodes_per_leaf_group;
    shape_.groups = round_up(layout.systems, shape_.systems_per_group);
    shape_.leaf_ports = shape_.systems_per_group * (layout.ranks_per_system / ranks_per_nic) /
                        (kind.leaf_per_rail ? nics : 1);
    shape_.port = system.accelerator.scale_out.bandwidth.value;
  }

  TreeShape plan() {
    const int leaves = shape_.groups * shape_.rails / shape_.planes;  // of a plane
    shape_.groups_per_pod = shape_.groups;
    if (leaves == 1) return shape_;
    shape_.leaf_up = leaf_rate() * (1 / oversubscription(0));
    shape_.leaf_uplinks = links(shape_.leaf_up);
    if (!config_.switch_ports.empty() &&
        shape_.leaf_ports + shape_.leaf_uplinks > config_.switch_ports.front()) {
      fail(fmt::format("a leaf has {} ports to NICs and {} to spines, but switch_ports is {}",
                       shape_.leaf_ports, shape_.leaf_uplinks, config_.switch_ports.front()));
    }
    divide_into_pods(leaves);
    plan_spines();
    if (shape_.pods > 1) plan_cores();
    return shape_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw config::KeyError(
        {"system.scale_out.switch_ports", "system.scale_out.nodes_per_leaf_group",
         "system.scale_out.oversubscription", "system.scale_out.leaf_groups_per_pod",
         "system.scale_out.planes", "nodes"},
        fmt::format("{}: {}", name_, what));
  }

  /// Ports of a switch of a tier: leaf 0, spine 1, core 2. One entry counts for all tiers. Where
  /// none is given, those of a leaf, but at least `least`.
  int ports(std::size_t tier, double least) const {
    const std::vector<int>& given = config_.switch_ports;
    if (!given.empty()) return given[std::min(tier, given.size() - 1)];
    return std::max(shape_.leaf_ports + shape_.leaf_uplinks, static_cast<int>(std::ceil(least)));
  }
  double oversubscription(std::size_t tier) const {
    return tier < config_.oversubscription.size() ? config_.oversubscription[tier] : 1;
  }
  BytesPerSecond leaf_rate() const { return shape_.port * static_cast<double>(shape_.leaf_ports); }
  int links(BytesPerSecond capacity) const {
    return std::max(1, static_cast<int>(std::lround(capacity / shape_.port)));
  }
  /// Leaves of a plane in a full pod.
  int pod_leaves() const { return shape_.groups_per_pod * shape_.rails / shape_.planes; }

  /// Uplinks that a spine has for every leaf of its pod, if it carries all of that leaf.
  double spine_links_per_leaf() const { return shape_.leaf_ports / oversubscription(1); }

  void divide_into_pods(int leaves) {
    if (config_.leaf_groups_per_pod > 0) {
      shape_.groups_per_pod = std::min(config_.leaf_groups_per_pod, shape_.groups);
    } else if (leaves > ports(1, leaves)) {
      const double most =
          ports(1, 0) * shape_.leaf_uplinks / (shape_.leaf_uplinks + spine_links_per_leaf());
      shape_.groups_per_pod = std::max(1, static_cast<int>(most) / (shape_.rails / shape_.planes));
    }
    shape_.pods = round_up(shape_.groups, shape_.groups_per_pod);
  }

  void plan_spines() {
    const double up = shape_.pods > 1 ? spine_links_per_leaf() : 0;
    const double links = pod_leaves() * (shape_.leaf_uplinks + up);
    const int spine_ports = ports(1, links / shape_.leaf_uplinks);
    const double needed = links / spine_ports;
    shape_.spines = equal_shares(shape_.leaf_uplinks, needed);
    if (shape_.spines == 0) {
      fail(
          fmt::format("a pod of {} leaves needs more than {} spines of {} ports, but a leaf has "
                      "only that many uplinks; give larger switch_ports or fewer "
                      "leaf_groups_per_pod",
                      pod_leaves(), shape_.leaf_uplinks, spine_ports));
    }
  }

  void plan_cores() {
    shape_.pod_up = leaf_rate() * (pod_leaves() / oversubscription(1));
    shape_.spine_uplinks =
        std::max(1, static_cast<int>(std::lround(shape_.pod_up / shape_.port / shape_.spines)));
    const int core_ports = ports(2, shape_.pods);
    const double needed = static_cast<double>(shape_.pods) * shape_.spine_uplinks / core_ports;
    shape_.cores_per_spine = equal_shares(shape_.spine_uplinks, needed);
    if (shape_.cores_per_spine == 0) {
      fail(fmt::format("{} pods need cores of as many ports; switch_ports gives {}", shape_.pods,
                       core_ports));
    }
  }

  std::string name_;
  const ScaleOutConfig& config_;
  TreeShape shape_;
};

}  // namespace

TreeShape tree_shape(const SystemConfig& system, const RankLayout& layout, TreeKind kind) {
  if (!system.accelerator.scale_out.present()) {
    throw config::KeyError(
        {"nodes", "system.accelerator.scale_out"},
        fmt::format("several systems need a scale_out bandwidth, which {} does not have",
                    system.accelerator.name));
  }
  if (system.scale_out.nodes_per_leaf_group < 1) {
    throw config::KeyError("system.scale_out.nodes_per_leaf_group", "must be positive");
  }
  return TreePlanner(system, layout, kind).plan();
}

}  // namespace orrery
