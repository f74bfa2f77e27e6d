// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_facts.h"

#include <algorithm>

#include "workloads/formats/dependencies.h"

namespace orrery {
namespace {

constexpr NodeId kNoNode = ~NodeId{0};

bool is_transfer(const ImportedNode& node) { return node.kind > NodeKind::kKernel; }

}  // namespace

Picoseconds recorded_time(const ImportedGraph& graph, NodeId id) {
  const ImportedNode& node = graph.nodes[id];
  return is_transfer(node) ? graph.messages[node.work].recorded : graph.works[node.work].recorded;
}

std::vector<NodeId> critical_path(const ImportedGraph& graph) {
  std::vector<Picoseconds> end(graph.size());  // first the latest end of what a node waits for
  std::vector<NodeId> before(graph.size(), kNoNode);
  NodeId last = kNoNode;
  in_order(graph, [&](NodeId node) {
    end[node] += recorded_time(graph, node);
    if (last == kNoNode || end[node] > end[last] || (end[node] == end[last] && node < last))
      last = node;
    for (const NodeId next : next_of(graph, node)) {
      if (before[next] != kNoNode && end[node] <= end[next]) continue;
      end[next] = end[node];
      before[next] = node;
    }
  });
  std::vector<NodeId> path;
  for (; last != kNoNode; last = before[last]) path.push_back(last);
  std::reverse(path.begin(), path.end());
  return path;
}

GraphFacts graph_facts(const ImportedGraph& graph) {
  GraphFacts facts;
  facts.nodes = graph.size();
  facts.dependencies = graph.next.size();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    const auto kind = static_cast<std::size_t>(node.kind);
    ++facts.by_kind[kind];
    facts.recorded[kind] += recorded_time(graph, id);
    if (is_transfer(node)) {
      const ImportedMessage& message = graph.messages[node.work];
      GraphFacts::Transfers& of = facts.transfers[to_string(message.kind)];
      ++of.count;
      of.bytes += message.bytes.base();
      continue;
    }
    const NodeWork& work = graph.works[node.work];
    if (node.kind != NodeKind::kMarker && !work.timed) ++facts.untimed;
    if (work.kernel == NodeWork::kNoKernel) continue;
    const Kernel& kernel = graph.kernels[work.kernel];
    facts.flops += (kernel.matrix_flops + kernel.vector_flops).base();
    facts.bytes += (kernel.read + kernel.written).base();
  }
  const std::vector<NodeId> path = critical_path(graph);
  facts.critical_nodes = path.size();
  for (const NodeId node : path) facts.critical_path += recorded_time(graph, node);
  for (const ImportedStream& stream : graph.streams) facts.streams.push_back(stream.name);
  return facts;
}

GraphFacts& GraphFacts::operator+=(const GraphFacts& other) {
  nodes += other.nodes;
  dependencies += other.dependencies;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    by_kind[kind] += other.by_kind[kind];
    recorded[kind] += other.recorded[kind];
  }
  untimed += other.untimed;
  flops += other.flops;
  bytes += other.bytes;
  for (const auto& [kind, more] : other.transfers) {
    transfers[kind].count += more.count;
    transfers[kind].bytes += more.bytes;
  }
  if (other.critical_path > critical_path) {
    critical_path = other.critical_path;
    critical_nodes = other.critical_nodes;
  }
  for (const std::string& stream : other.streams)
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  return *this;
}

}  // namespace orrery
