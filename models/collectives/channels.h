// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/collectives/algorithm.h"

namespace orrery {

/// The members of a group (positions in it) by system, and how NCCL uses all NICs of a node: as
/// many rings or trees ("channels") as there are NICs, each carrying an equal share and entering
/// every system at another member.
class Channels {
 public:
  /// `collective` must outlive it.
  explicit Channels(const Collective& collective);

  /// Within one system the rings that its wiring has, or 1 where there are switches, on which
  /// spraying already uses all links; otherwise the members of the smallest part, each of which has
  /// a NIC.
  int count() const { return count_; }
  int systems() const { return static_cast<int>(first_.size()) - 1; }
  /// Members in one system.
  int part_size(int system) const { return static_cast<int>(part(system).size()); }
  /// Members of one system, by rank.
  std::span<const int> part(int system) const;
  /// The member that a channel visits as the `index`-th of a system, from the entry of the channel
  /// on: by rank, or in the order of a ring over direct links.
  int member(int system, int channel, int index) const;
  /// Members of the largest part.
  int largest_part() const;
  /// Whether every system has as many members.
  bool even() const { return largest_part() * systems() == static_cast<int>(members_.size()); }

 private:
  std::vector<int> members_;              // by rank
  std::vector<std::size_t> first_;        // of each system in members_, and the end
  const std::vector<RingOrders>& rings_;  // by system; empty: by rank
  int count_ = 1;
};

/// The ranks of a group whose systems have as many members each, laid out for FlowSink.
class RailGroups {
 public:
  RailGroups(const Collective& collective, const Channels& channels);

  /// The ranks of one system.
  std::span<const int> system(int system) const {
    return std::span(by_system_).subspan(static_cast<std::size_t>(system) * rails_, rails_);
  }
  /// The `rail`-th rank of every system.
  std::span<const int> rail(int rail) const {
    return std::span(by_rail_).subspan(static_cast<std::size_t>(rail) * systems_, systems_);
  }

 private:
  std::size_t systems_, rails_;
  std::vector<int> by_system_, by_rail_;
};

}  // namespace orrery
