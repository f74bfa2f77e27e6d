// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/graph_replay.h"

/// Imported graphs and their prices for tests.
namespace orrery::test {

inline constexpr std::uint16_t kFirst = 0, kSecond = 1, kLoose = 2;

/// A graph whose nodes are added one by one, on two serial streams and one that is not.
class GraphOf {
 public:
  GraphOf() { graph_.streams = {{"first", true}, {"second", true}, {"loose", false}}; }

  NodeId kernel(Picoseconds time, std::vector<NodeId> after = {}, std::uint16_t stream = kFirst) {
    NodeWork work;
    work.recorded = time;
    work.timed = true;
    graph_.works.push_back(work);
    return add(NodeKind::kKernel, graph_.works.size() - 1, std::move(after), stream);
  }
  NodeId communicates(NodeKind kind, const ImportedMessage& message, std::vector<NodeId> after = {},
                      std::uint16_t stream = kLoose) {
    graph_.messages.push_back(message);
    return add(kind, graph_.messages.size() - 1, std::move(after), stream);
  }
  NodeId collective(double bytes, std::vector<NodeId> after = {},
                    std::uint32_t group = ImportedMessage::kWorld, Picoseconds recorded = 0) {
    ImportedMessage message;
    message.bytes = Bytes(bytes);
    message.group = group;
    message.recorded = recorded;
    return communicates(NodeKind::kCollective, message, std::move(after));
  }

  ImportedGraph finished() {
    ImportedGraph graph = graph_;
    graph.nodes.emplace_back();
    for (NodeId node = 0; node < graph.ids.size(); ++node) {
      graph.nodes[node].first_next = static_cast<std::uint32_t>(graph.next.size());
      for (NodeId later = 0; later < after_.size(); ++later)
        for (const NodeId earlier : after_[later])
          if (earlier == node) graph.next.push_back(later);
    }
    graph.nodes.back().first_next = static_cast<std::uint32_t>(graph.next.size());
    return graph;
  }

 private:
  NodeId add(NodeKind kind, std::size_t work, std::vector<NodeId> after, std::uint16_t stream) {
    const auto number = static_cast<NodeId>(graph_.ids.size());
    graph_.ids.push_back(100 + number);
    graph_.names.push_back(graph_.pool.append("n" + std::to_string(number)));
    graph_.nodes.push_back({static_cast<std::uint32_t>(work), 0,
                            static_cast<std::uint32_t>(after.size()), stream, kind});
    after_.push_back(std::move(after));
    return number;
  }

  ImportedGraph graph_;
  std::vector<std::vector<NodeId>> after_;
};

inline ImportedRun run_of(std::vector<GraphOf> ranks) {
  ImportedRun run;
  for (GraphOf& rank : ranks) {
    run.graph_of_rank.push_back(static_cast<std::uint32_t>(run.graphs.size()));
    run.graphs.push_back(rank.finished());
  }
  return run;
}

/// What a run takes where a transfer takes `latency` and then its bytes on one link of 1 byte/ps.
struct OnOneLink {
  explicit OnOneLink(const ImportedRun& run, Picoseconds latency = 0) : transfers(run) {
    costs.links = {BytesPerSecond(1e12)};
    for (const Transfer& transfer : transfers.list()) {
      TransferCost cost;
      cost.latency = latency;
      cost.loads = {{0, transfer.bytes.base(), transfer.bytes.base()}};
      costs.transfers.push_back(cost);
    }
    nodes.transfers = &transfers;
  }
  ImportedTransfers transfers;
  GraphCosts nodes;
  Costs costs;
};

inline GraphReplayResult replay_on_one_link(const ImportedRun& run, Picoseconds latency = 0) {
  const OnOneLink prices(run, latency);
  return replay(run, prices.nodes, prices.costs);
}

inline std::vector<Picoseconds> ends_of(const GraphReplayResult& result) {
  std::vector<Picoseconds> ends;
  for (const RoleResult& rank : result.roles) ends.push_back(rank.end);
  return ends;
}

/// A message to another rank, or from it.
inline ImportedMessage message(int peer, double bytes, std::int64_t tag = 0) {
  ImportedMessage message;
  message.kind = TransferKind::kSendReceive;
  message.bytes = Bytes(bytes);
  message.peer = peer;
  message.tag = tag;
  return message;
}

/// All kernels take `factor` times as long beside any transfer.
class SlowedBy final : public SlowdownModel {
 public:
  explicit SlowedBy(double factor) : factor_(factor) {}
  double slowdown(KernelId /*kernel*/, const DeviceLoad& /*taken*/) override { return factor_; }

 private:
  double factor_;
};

/// Lets all works of a run be kernel 0, whose time transfers change unless it is fixed, and all
/// transfers take a unit of the devices of their ranks.
inline void share_devices(const ImportedRun& run, OnOneLink& prices, bool fixed = false) {
  KernelCost cost;
  cost.fixed = fixed;
  prices.costs.kernels = {cost};
  for (const ImportedGraph& graph : run.graphs)
    prices.nodes.kernels.emplace_back(graph.works.size(), KernelId{0});
  for (TransferCost& transfer : prices.costs.transfers) transfer.device.units = 1;
}

}  // namespace orrery::test
