// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/route_lengths.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace orrery {
namespace {

/// Visits pairs of a group: all, or those from evenly spread sources where there are too many.
template <class Visit>
void for_each_pair(std::span<const int> group, Visit visit) {
  constexpr std::size_t kMostPairs = std::size_t{1} << 20;
  const std::size_t stride = (group.size() * group.size() - 1) / kMostPairs + 1;
  for (std::size_t i = 0; i < group.size(); i += stride) {
    for (const int destination : group) {
      if (destination != group[i]) visit(group[i], destination);
    }
  }
}

}  // namespace

RouteLengths::RouteLengths(const Fabric& fabric, const RankLayout& layout)
    : fabric_(fabric), layout_(layout) {
  constexpr int kNone = std::numeric_limits<int>::max();
  int inside = kNone, between = kNone;
  std::vector<int> system(static_cast<std::size_t>(layout.ranks_per_system));
  std::iota(system.begin(), system.end(), 0);
  for_each_pair(system, [&](int source, int destination) {
    const int links = fabric.hops(source, destination);
    if (links > 0) inside = std::min(inside, links);  // 0: on one package
  });
  // Systems are alike.
  for (int rank = layout.ranks_per_system; rank < layout.ranks(); ++rank)
    between = std::min(between, fabric.route(0, rank).between);
  if (inside != kNone) shortest_inside_ = inside;
  if (between != kNone) shortest_between_ = between;
}

ExtraLinks RouteLengths::beyond_shortest(int source, int destination) const {
  const RouteLinks route = fabric_.route(source, destination);
  if (layout_.system(source) == layout_.system(destination))
    return {.scale_up = std::max(0, route.inside - shortest_inside_)};
  return {.scale_up = route.inside, .scale_out = std::max(0, route.between - shortest_between_)};
}

void RouteLengths::include(int source, int destination, LongestRoutes& longest) const {
  const ExtraLinks extra = beyond_shortest(source, destination);
  const bool inside = layout_.system(source) == layout_.system(destination);
  ExtraLinks& most = inside ? longest.inside : longest.between;
  most.scale_up = std::max(most.scale_up, extra.scale_up);
  most.scale_out = std::max(most.scale_out, extra.scale_out);
}

void RouteLengths::include(std::span<const int> group, LongestRoutes& longest) const {
  for_each_pair(group, [&](int source, int destination) { include(source, destination, longest); });
}

}  // namespace orrery
