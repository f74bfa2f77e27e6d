// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/tree_exchange.h"

#include <algorithm>

namespace orrery {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

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
      system_members_(index(layout.systems)),
      place_members_(index(layout.ranks_per_node)),
      in_system_(index(layout.systems * layout.ranks_per_node)),
      leaf_members_(index(shape.leaves())),
      rail_members_(index(shape.rails)),
      group_members_(index(shape.groups)),
      pod_members_(index(shape.pods)),
      plane_members_(index(shape.planes)),
      pod_plane_members_(index(shape.pods * shape.planes)) {
  std::sort(members_.begin(), members_.end());
  for (const int rank : members_) {
    const int system = layout.system(rank), leaf = tree_leaf(layout, shape, rank);
    const int rail = leaf % shape.rails, leaf_group = leaf / shape.rails;
    const int pod = leaf_group / shape.groups_per_pod, plane = rail % shape.planes;
    system_members_[index(system)] += 1;
    place_members_[index(place(rank))] += 1;
    in_system_[index(system * layout.ranks_per_node + place(rank))] += 1;
    leaf_members_[index(leaf)] += 1;
    rail_members_[index(rail)] += 1;
    group_members_[index(leaf_group)] += 1;
    pod_members_[index(pod)] += 1;
    plane_members_[index(plane)] += 1;
    pod_plane_members_[index(pod * shape.planes + plane)] += 1;
  }
  if (!relays_) count_direct();
}

double TreeExchange::elsewhere(int system, int place) const {
  return place_members_[index(place)] - in_system_[index(system * layout_.ranks_per_node + place)];
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

double TreeExchange::received_from_elsewhere(int rank) const {
  return static_cast<double>(members_.size()) - system_members_[index(layout_.system(rank))];
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
          const std::size_t leaf = index(leaf_of_system(layout_.system(part.front()), rail));
          direct_[leaf] +=
              mine * (all - static_cast<double>(part.size()) - (leaf_members_[leaf] - mine));
        }
      });
}

TreeExchange::Messages TreeExchange::above_leaf(int leaf) const {
  if (!relays_) return {direct_[index(leaf)], direct_[index(leaf)]};
  const double group = group_members_[index(leaf / shape_.rails)];
  const double mine = leaf_members_[index(leaf)];
  return {group * (rail_members_[index(leaf % shape_.rails)] - mine),
          mine * (static_cast<double>(members_.size()) - group)};
}

TreeExchange::Messages TreeExchange::above_pod(int pod_plane) const {
  const double pod = pod_members_[index(pod_plane / shape_.planes)];
  const double mine = pod_plane_members_[index(pod_plane)];
  return {pod * (plane_members_[index(pod_plane % shape_.planes)] - mine),
          mine * (static_cast<double>(members_.size()) - pod)};
}

}  // namespace orrery
