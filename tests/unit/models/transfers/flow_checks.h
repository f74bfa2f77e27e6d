// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/transfers/flow_model.h"

namespace orrery::fixtures {

inline std::vector<int> range(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

inline Transfer transfer(TransferKind kind, Bytes bytes, std::vector<std::vector<int>> groups) {
  Transfer result;
  result.name = "test";
  result.kind = kind;
  result.bytes = bytes;
  result.groups = std::move(groups);
  return result;
}

/// Loads by link, dense.
inline std::vector<double> dense_loads(const FlowModel& network, const TransferCost& cost) {
  std::vector<double> loads(network.capacities().size());
  for (const LinkLoad& load : cost.loads) loads[load.link] += load.bytes;
  return loads;
}

/// Index of the link of that name.
inline std::size_t link(const FlowModel& network, const std::string& name) {
  const Topology& topology = network.topology();
  for (BundleId i = 0; i < topology.bundles().size(); ++i) {
    if (topology.bundle_name(i) == name) return i;
  }
  throw std::out_of_range("no link " + name);
}

/// Whether links are a NIC's, one way; those between switches are not.
inline bool is_nic(const Topology& topology, BundleId bundle) {
  return topology.bundles()[bundle].kind == LinkKind::kScaleOut &&
         topology.bundle_name(bundle).find("accelerator") != std::string::npos;
}

struct RecordedFlow {
  int source = 0, destination = 0;
  double bytes = 0;
};

/// Keeps the flows of an algorithm.
class RecordingSink final : public FlowSink {
 public:
  void add(int source, int destination, Bytes bytes) override {
    flows.push_back({source, destination, bytes.base()});
  }
  void reduce(std::span<const int> group, Bytes bytes) override {
    for (const int rank : group) reduced.push_back({rank, -1, bytes.base()});
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    for (const int rank : group) multicasts.push_back({-1, rank, bytes.base()});
  }
  double sent(int rank) const {
    double sum = 0;
    for (const RecordedFlow& flow : flows) sum += flow.source == rank ? flow.bytes : 0;
    return sum;
  }
  double received(int rank) const {
    double sum = 0;
    for (const RecordedFlow& flow : flows) sum += flow.destination == rank ? flow.bytes : 0;
    return sum;
  }
  std::vector<RecordedFlow> flows;
  std::vector<RecordedFlow> reduced, multicasts;  ///< one per rank, -1 for the switches
};

}  // namespace orrery::fixtures
