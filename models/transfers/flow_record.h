// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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
    keep(Kind::kAdd, std::vector<int>{source, destination}, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    sink_.exchange(group, bytes);
    keep(Kind::kExchange, group, bytes);
  }
  void reduce(std::span<const int> group, Bytes bytes) override {
    sink_.reduce(group, bytes);
    keep(Kind::kReduce, group, bytes);
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    sink_.multicast(group, bytes);
    keep(Kind::kMulticast, group, bytes);
  }

  /// Gives the sink the same flows of the group `behind` ranks behind the one that was recorded.
  void repeat(int behind);

 private:
  enum class Kind : std::uint8_t { kAdd, kExchange, kReduce, kMulticast };
  struct Flow {
    Kind kind;
    std::size_t ranks;  ///< how many
    Bytes bytes;
  };

  void keep(Kind kind, std::span<const int> ranks, Bytes bytes) {
    flows_.push_back({kind, ranks.size(), bytes});
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
  }

  FlowSink& sink_;
  std::vector<Flow> flows_;
  std::vector<int> ranks_;  ///< ranks of all flows, one after the other
  int behind_ = 0;          ///< index behind the last of `ranks_` that flows have
};

}  // namespace orrery
