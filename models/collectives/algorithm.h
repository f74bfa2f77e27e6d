// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "models/registry.h"
#include "models/topologies/fabric.h"
#include "sim/graph/transfer.h"
#include "sim/units/units.h"

namespace orrery {

/// Receives the traffic of an algorithm, in however many messages it is.
class FlowSink {
 public:
  virtual ~FlowSink() = default;

  /// `bytes` go from one rank to another.
  virtual void add(int source, int destination, Bytes bytes) = 0;
  /// Every rank of the group sends `bytes` to each other one.
  virtual void exchange(std::span<const int> group, Bytes bytes);
  /// Every rank of the group sends `bytes` up, and the switches reduce them to one result of that
  /// size. Only where Collective::switches_reduce.
  virtual void reduce(std::span<const int> group, Bytes bytes) = 0;
  /// The switches send one copy of `bytes` to every rank of the group. Only where
  /// Collective::switches_reduce.
  virtual void multicast(std::span<const int> group, Bytes bytes) = 0;
};

/// Dependent steps on the longest chain of an algorithm: each costs one latency.
struct StepCount {
  int scale_up = 0;   ///< between ranks of one system
  int scale_out = 0;  ///< between systems
};

/// One group of a transfer: at least two different ranks.
struct Collective {
  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;  ///< as in Transfer
  std::span<const int> group;
  const RankLayout& layout;
  bool switches_reduce = false;  ///< the fabric between these ranks reduces and multicasts
  const ExpertRouting* routing = nullptr;  ///< of a dispatch or combine

  int size() const { return static_cast<int>(group.size()); }
  bool spans_systems() const;
};

/// How a collective is carried out: who sends how much to whom, and in how many dependent steps.
/// Stateless; one object serves all threads and runs.
class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;

  virtual bool serves(const Collective& collective) const = 0;
  /// Reports all flows of the group. Only for a collective that it serves.
  virtual StepCount run(const Collective& collective, FlowSink& sink) const = 0;
};

using AlgorithmRegistry = Registry<std::shared_ptr<const CollectiveAlgorithm>>;

}  // namespace orrery
