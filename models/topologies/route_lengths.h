// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "models/topologies/fabric.h"

namespace orrery {

/// Links by which a route is longer than the shortest of its kind; each costs one hop latency.
struct ExtraLinks {
  int scale_up = 0;
  int scale_out = 0;
  bool operator==(const ExtraLinks&) const = default;
};

/// The most of the messages of an exchange, of those inside systems and those between.
struct LongestRoutes {
  ExtraLinks inside, between;
};

/// How long routes are against the shortest ones: that between two packages of a system, and that
/// between two systems. Between systems, all links inside are extra (those to another rail).
class RouteLengths {
 public:
  /// @param fabric healthy; what becomes of it later counts in beyond_shortest()
  RouteLengths(const Fabric& fabric, const RankLayout& layout);

  ExtraLinks beyond_shortest(int source, int destination) const;
  void include(int source, int destination, LongestRoutes& longest) const;
  /// All pairs of a group; of more than 2^20 those from evenly spread sources.
  void include(std::span<const int> group, LongestRoutes& longest) const;

 private:
  const Fabric& fabric_;
  RankLayout layout_;
  int shortest_inside_ = 0, shortest_between_ = 0;
};

}  // namespace orrery
