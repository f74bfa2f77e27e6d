// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/dimensions.h"
#include "models/topologies/fabric.h"
#include "models/topologies/route_lengths.h"
#include "sim/machine/network.h"

namespace orrery {

/// Adds up the bytes on every bundle, and those that each rank reads from its memory to send them
/// or writes there as they arrive; measures the longest routes. Most transfers load few links of a
/// large machine: only these are walked and cleared.
class LoadSink final : public FlowSink {
 public:
  LoadSink(const Fabric& fabric, std::size_t bundles, int ranks)
      : fabric_(fabric),
        dimensions_(fabric.dimensions()),
        loads_(bundles),
        loaded_(bundles / kWord + 1),
        memory_(static_cast<std::size_t>(ranks)) {}

  /// As if nothing had been added.
  void clear() {
    each_load([this](BundleId bundle, double /*bytes*/) { loads_[bundle] = 0; });
    std::fill(loaded_.begin(), loaded_.end(), 0);
    any_link_ = false;
    std::fill(memory_.begin(), memory_.end(), 0);
    most_memory_ = 0;
  }

  /// From now on the routes of messages are measured, or not.
  void measure(const RouteLengths* routes) {
    routes_ = routes;
    longest_ = {};
    link_latency_ = {};
  }
  const LongestRoutes& longest() const { return longest_; }
  /// Latency of the links of the longest route since measure(), of fabrics with dimensions.
  Seconds link_latency() const { return link_latency_; }

  void add(int source, int destination, Bytes bytes) override {
    if (routes_ != nullptr) routes_->include(source, destination, longest_);
    if (dimensions_ != nullptr)
      link_latency_ =
          std::max(link_latency_, dimensions_->link_latency(std::array{source, destination}));
    route_.clear();
    fabric_.append_route(source, destination, route_);
    add_route(bytes);
    count(source, bytes);
    count(destination, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    if (routes_ != nullptr) routes_->include(group, longest_);
    if (dimensions_ != nullptr)
      link_latency_ = std::max(link_latency_, dimensions_->link_latency(group));
    fabric_.add_exchange(group, bytes.base(), loads_);
    if (!std::exchange(any_link_, true)) mark_all();  // which ones, only the fabric knows
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

  /// Visits the links that carry anything with their bytes, in rising order.
  template <class Visit>
  void each_load(Visit visit) const {
    for (std::size_t word = 0; word < loaded_.size(); ++word) {
      for (std::uint64_t left = loaded_[word]; left != 0; left &= left - 1) {
        const std::size_t bundle = word * kWord + static_cast<std::size_t>(std::countr_zero(left));
        if (loads_[bundle] != 0) visit(static_cast<BundleId>(bundle), loads_[bundle]);
      }
    }
  }
  Bytes most_memory() const { return Bytes(most_memory_); }

 private:
  static constexpr std::size_t kWord = 64;

  void mark(BundleId bundle) { loaded_[bundle / kWord] |= std::uint64_t{1} << bundle % kWord; }
  void mark_all() {
    std::fill(loaded_.begin(), loaded_.end(), ~std::uint64_t{0});
    loaded_.back() = (std::uint64_t{1} << loads_.size() % kWord) - 1;
  }
  void add_route(Bytes bytes) {
    for (const Hop& hop : route_) {
      loads_[hop.bundle] += bytes.base() * hop.share;
      mark(hop.bundle);
    }
  }
  void count(int rank, Bytes bytes) {
    double& memory = memory_[static_cast<std::size_t>(rank)];
    memory += bytes.base();
    most_memory_ = std::max(most_memory_, memory);
  }

  const Fabric& fabric_;
  const DimensionGrid* dimensions_;
  std::vector<double> loads_;
  std::vector<std::uint64_t> loaded_;  ///< a bit for each link that may have been met
  bool any_link_ = false;              ///< every link may have been
  std::vector<double> memory_;         ///< bytes of memory by rank
  double most_memory_ = 0;
  Route route_;
  const RouteLengths* routes_ = nullptr;
  LongestRoutes longest_;
  Seconds link_latency_;
};

/// Bytes that cross links of each kind between two packages.
BytesByKind bytes_by_kind(const LinkLoads& loads, const std::vector<Bundle>& bundles);

}  // namespace orrery
