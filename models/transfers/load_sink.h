// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/dimensions.h"
#include "models/topologies/fabric.h"
#include "models/topologies/way_lengths.h"
#include "sim/machine/network.h"

namespace orrery {

/// Adds up the bytes on every bundle, and those that each rank reads from its memory to send them
/// or writes there as they arrive; measures the longest ways.
class LoadSink final : public FlowSink {
 public:
  LoadSink(const Fabric& fabric, std::size_t bundles, int ranks)
      : fabric_(fabric),
        dimensions_(fabric.dimensions()),
        loads_(bundles),
        memory_(static_cast<std::size_t>(ranks)) {}

  /// From now on the ways of messages are measured, or not.
  void measure(const WayLengths* ways) {
    ways_ = ways;
    longest_ = {};
    link_latency_ = {};
  }
  const LongestWays& longest() const { return longest_; }
  /// Latency of the links of the longest way since measure(), of fabrics with dimensions.
  Seconds link_latency() const { return link_latency_; }

  void add(int source, int destination, Bytes bytes) override {
    if (ways_ != nullptr) ways_->include(source, destination, longest_);
    if (dimensions_ != nullptr)
      link_latency_ = std::max(link_latency_, dimensions_->link_latency(source, destination));
    route_.clear();
    fabric_.append_route(source, destination, route_);
    add_route(bytes);
    count(source, bytes);
    count(destination, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    if (ways_ != nullptr) ways_->include(group, longest_);
    if (dimensions_ != nullptr)
      link_latency_ = std::max(link_latency_, dimensions_->link_latency(group));
    fabric_.add_exchange(group, bytes.base(), loads_);
    // Out and in.
    for (const int rank : group) count(rank, 2.0 * static_cast<double>(group.size() - 1) * bytes);
  }
  void reduce(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_reduction(group, route_);
    add_route(bytes);
    for (const int rank : group) count(rank, bytes);
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_multicast(group, route_);
    add_route(bytes);
    for (const int rank : group) count(rank, bytes);
  }

  const std::vector<double>& loads() const { return loads_; }
  Bytes most_memory() const { return Bytes(*std::max_element(memory_.begin(), memory_.end())); }

 private:
  void add_route(Bytes bytes) {
    for (const Hop& hop : route_) loads_[hop.bundle] += bytes.base() * hop.share;
  }
  void count(int rank, Bytes bytes) { memory_[static_cast<std::size_t>(rank)] += bytes.base(); }

  const Fabric& fabric_;
  const DimensionGrid* dimensions_;
  std::vector<double> loads_;
  std::vector<double> memory_;  ///< bytes of memory by rank
  Route route_;
  const WayLengths* ways_ = nullptr;
  LongestWays longest_;
  Seconds link_latency_;
};

/// Bytes that go the way between two packages over links of each kind.
BytesByKind bytes_by_kind(const LinkLoads& loads, const std::vector<Bundle>& bundles);

}  // namespace orrery
