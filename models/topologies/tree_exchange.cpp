// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/tree_exchange.h"

#include <algorithm>
#include "models/topologies/fabric.h"

namespace orrery {
namespace {

/// Calls `visit` for each run of members with the same `part`.
template <class PartOf, class Visit>
void for_each_part(const std::vector<int>& members, PartOf part, Visit visit) {
  for (auto begin = members.begin(); begin != members.end();) {
    const auto end =
        std::find_if(begin, members.end(), [&](int rank) { return part(rank) != part(*begin); });
    visit(std::span<const int>(begin, end));
    begin = end;
  }
}

}  // namespace

int tree_leaf(const RankLayout& layout, const TreeShape& shape, int rank) {
  const int rail = shape.rails == 1 ? 0 : layout.rail(rank) / shape.packages_per_nic;
  return layout.system(rank) / shape.systems_per_group * shape.rails + rail;
}

TreeExchange::TreeExchange(const RankLayout& layout, const TreeShape& shape, bool relays,
                           std::span<const int> group)
    : layout_(layout),
      shape_(shape),
      relays_(relays),
      members_(group.begin(), group.end()),
      place_members_(index(layout.ranks_per_node)),
      rail_members_(index(shape.rails)),
      plane_members_(index(shape.planes)) {
  std::sort(members_.begin(), members_.end());
  size_parts();
  for (const int rank : members_) {
    const int system = layout.system(rank), leaf = tree_leaf(layout, shape, rank);
    const int rail = leaf % shape.rails, leaf_group = leaf / shape.rails;
    const int pod = leaf_group / shape.groups_per_pod, plane = rail % shape.planes;
    system_members_[at_system(system)] += 1;
    place_members_[index(place(rank))] += 1;
    in_system_[at_place(system, place(rank))] += 1;
    leaf_members_[at_leaf(leaf)] += 1;
    rail_members_[index(rail)] += 1;
    group_members_[at_group(leaf_group)] += 1;
    pod_members_[at_pod(pod)] += 1;
    plane_members_[index(plane)] += 1;
    pod_plane_members_[at_pod_plane(pod * shape.planes + plane)] += 1;
  }
  if (!relays_) count_direct();
}

/// Only of what lies between the first and the last member.
void TreeExchange::size_parts() {
  if (members_.empty()) return;
  const auto range = [&](int systems) {
    return Range{layout_.system(members_.front()) / systems,
                 layout_.system(members_.back()) / systems + 1};
  };
  systems_ = range(1);
  groups_ = range(shape_.systems_per_group);
  pods_ = range(shape_.systems_per_group * shape_.groups_per_pod);
  system_members_.resize(at_system(systems_.end));
  in_system_.resize(at_place(systems_.end, 0));
  group_members_.resize(at_group(groups_.end));
  leaf_members_.resize(at_leaf(groups_.end * shape_.rails));
  pod_members_.resize(at_pod(pods_.end));
  pod_plane_members_.resize(at_pod_plane(pods_.end * shape_.planes));
}

void TreeExchange::add_inside(const Fabric& scale_up, double bytes,
                              std::vector<double>& loads) const {
  for_each_part(
      members_, [&](int rank) { return layout_.system(rank); },
      [&](std::span<const int> part) {
        if (part.size() > 1) scale_up.add_exchange(part, bytes, loads);
      });
  if (!relays_) return;
  Route route;
  for (const int rank : members_) {
    const int first = layout_.node(rank) * layout_.ranks_per_node;
    for (int p = 0; p < layout_.ranks_per_node; ++p) {
      const double messages = elsewhere(layout_.system(rank), p);
      if (first + p == rank || messages == 0) continue;
      route.clear();
      scale_up.append_route(rank, first + p, route);
      for (const Hop& hop : route) loads[hop.bundle] += bytes * messages * hop.share;
    }
  }
}

void TreeExchange::for_each_sender(const std::function<void(int, double)>& visit) const {
  if (!relays_) {
    for (const int rank : members_) visit(rank, received_from_elsewhere(rank));
    return;
  }
  for_each_part(
      members_, [&](int rank) { return layout_.node(rank); },
      [&](std::span<const int> part) {
        const int first = layout_.node(part.front()) * layout_.ranks_per_node;
        const auto sources = static_cast<double>(part.size());
        for (int p = 0; p < layout_.ranks_per_node; ++p) {
          visit(first + p, sources * elsewhere(layout_.system(first), p));
        }
      });
}

// A member sends to all that are neither in its system nor on its leaf.
void TreeExchange::count_direct() {
  direct_.resize(leaf_members_.size());
  std::vector<double> here(index(shape_.rails));
  const auto all = static_cast<double>(members_.size());
  for_each_part(
      members_, [&](int rank) { return layout_.system(rank); },
      [&](std::span<const int> part) {
        std::fill(here.begin(), here.end(), 0);
        for (const int rank : part) {
          here[index(tree_leaf(layout_, shape_, rank) % shape_.rails)] += 1;
        }
        for (int rail = 0; rail < shape_.rails; ++rail) {
          const double mine = here[index(rail)];
          const std::size_t leaf = at_leaf(leaf_of_system(layout_.system(part.front()), rail));
          direct_[leaf] +=
              mine * (all - static_cast<double>(part.size()) - (leaf_members_[leaf] - mine));
        }
      });
}

TreeExchange::Messages TreeExchange::above_leaf(int leaf) const {
  if (!relays_) return {direct_[at_leaf(leaf)], direct_[at_leaf(leaf)]};
  const double group = group_members_[at_group(leaf / shape_.rails)];
  const double mine = leaf_members_[at_leaf(leaf)];
  return {group * (rail_members_[index(leaf % shape_.rails)] - mine),
          mine * (static_cast<double>(members_.size()) - group)};
}

TreeExchange::Messages TreeExchange::above_pod(int pod_plane) const {
  const double pod = pod_members_[at_pod(pod_plane / shape_.planes)];
  const double mine = pod_plane_members_[at_pod_plane(pod_plane)];
  return {pod * (plane_members_[index(pod_plane % shape_.planes)] - mine),
          mine * (static_cast<double>(members_.size()) - pod)};
}

}  // namespace orrery
