// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/collectives/algorithm.h"

namespace orrery {

/// Remembers the flows of one group on their way to a sink, to repeat them for groups of its form.
class FlowRecord final : public FlowSink {
 public:
  explicit FlowRecord(FlowSink& sink) : sink_(sink) {}

  void add(int source, int destination, Bytes bytes) override {
    sink_.add(source, destination, bytes);
    keep(nullptr, std::vector<int>{source, destination}, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    sink_.exchange(group, bytes);
    keep(&FlowSink::exchange, group, bytes);
  }
  void reduce(std::span<const int> group, Bytes bytes) override {
    sink_.reduce(group, bytes);
    keep(&FlowSink::reduce, group, bytes);
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    sink_.multicast(group, bytes);
    keep(&FlowSink::multicast, group, bytes);
  }

  /// Gives the sink the same flows of the group `behind` ranks behind the one that was recorded.
  void repeat(int behind) {
    for (int& rank : ranks_) rank += behind - behind_;
    behind_ = behind;
    std::span<const int> rest = ranks_;
    for (const Flow& flow : flows_) {
      const std::span<const int> ranks = rest.first(flow.ranks);
      rest = rest.subspan(flow.ranks);
      if (flow.of_group != nullptr) {
        (sink_.*flow.of_group)(ranks, flow.bytes);
      } else {
        sink_.add(ranks[0], ranks[1], flow.bytes);
      }
    }
  }

 private:
  using OfGroup = void (FlowSink::*)(std::span<const int>, Bytes);
  struct Flow {
    OfGroup of_group;   ///< null: from one rank to another
    std::size_t ranks;  ///< how many
    Bytes bytes;
  };

  void keep(OfGroup of_group, std::span<const int> ranks, Bytes bytes) {
    flows_.push_back({of_group, ranks.size(), bytes});
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
  }

  FlowSink& sink_;
  std::vector<Flow> flows_;
  std::vector<int> ranks_;  ///< ranks of all flows, one after the other
  int behind_ = 0;          ///< index behind the last of `ranks_` that flows have
};

}  // namespace orrery
