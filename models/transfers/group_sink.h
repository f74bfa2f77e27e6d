// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/fabric.h"

namespace orrery {

/// Adds up the bytes of some groups by the bundles that they cross, without a place for all bundles
/// of the machine.
class GroupSink final : public FlowSink {
 public:
  GroupSink(const Fabric& fabric, std::size_t bundles) : fabric_(fabric), bundles_(bundles) {}

  void add(int source, int destination, Bytes bytes) override {
    route_.clear();
    fabric_.append_route(source, destination, route_);
    add_route(route_, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override;
  void reduce(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_reduction(group, route_);
    add_route(route_, bytes);
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_multicast(group, route_);
    add_route(route_, bytes);
  }
  void add_route(const Route& route, Bytes bytes) {
    for (const Hop& hop : route) loads_.emplace_back(hop.bundle, bytes.base() * hop.share);
  }

  /// Bytes by bundle, ascending; nothing is left of them.
  std::vector<std::pair<BundleId, double>> take();

 private:
  const Fabric& fabric_;
  std::size_t bundles_;
  Route route_;
  std::vector<std::pair<BundleId, double>> loads_;  ///< loads as they came
};

}  // namespace orrery
