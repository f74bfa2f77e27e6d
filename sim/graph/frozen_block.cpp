// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/frozen_block.h"

#include "sim/graph/operator_graph_boost.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

namespace orrery {
namespace {

/// Where an operator stands: its stream and its place there.
struct Position {
  StreamId stream = 0;
  std::uint32_t offset = 0;
};

/// The highest count that the dependencies of `id` ask for, per other stream; 0 for none.
std::vector<std::uint32_t> required_counts(const OperatorGraph& graph, OperatorId id,
                                           const std::vector<Position>& positions,
                                           std::size_t streams) {
  std::vector<std::uint32_t> counts(streams, 0);
  const auto [begin, end] = boost::in_edges(id, graph.graph());
  for (auto edge = begin; edge != end; ++edge) {
    const Position& earlier = positions[boost::source(*edge, graph.graph())];
    if (earlier.stream != positions[id].stream) {
      counts[earlier.stream] = std::max(counts[earlier.stream], earlier.offset + 1);
    }
  }
  return counts;
}

}  // namespace

std::vector<OperatorId> execution_order(const OperatorGraph& graph) {
  const auto& g = graph.graph();
  std::vector<std::size_t> missing(graph.size());
  std::priority_queue<OperatorId, std::vector<OperatorId>, std::greater<>> ready;
  for (OperatorId id = 0; id < graph.size(); ++id) {
    missing[id] = boost::in_degree(id, g);
    if (missing[id] == 0) {
      ready.push(id);
    }
  }
  std::vector<OperatorId> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const OperatorId id = ready.top();
    ready.pop();
    order.push_back(id);
    const auto [begin, end] = boost::out_edges(id, g);
    for (auto edge = begin; edge != end; ++edge) {
      const auto later = static_cast<OperatorId>(boost::target(*edge, g));
      if (--missing[later] == 0) {
        ready.push(later);
      }
    }
  }
  return order;
}

namespace {

/// Appends the counts that a stream has not waited for yet, and remembers them in `waited`.
void append_waits(const std::vector<std::uint32_t>& counts, std::vector<std::uint32_t>& waited,
                  FrozenOperator& op, std::vector<StreamWait>& waits) {
  for (std::size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] <= waited[s]) continue;
    waited[s] = counts[s];
    waits.push_back({counts[s], static_cast<StreamId>(s)});
    ++op.waits;
  }
}

}  // namespace

FrozenBlock freeze(const OperatorGraph& graph, std::size_t streams) {
  const std::vector<OperatorId> order = execution_order(graph);
  if (order.size() != graph.size()) {
    throw std::logic_error("a block with a cycle cannot be replayed; verify() names it");
  }
  std::vector<std::vector<OperatorId>> by_stream(streams);
  std::vector<Position> positions(graph.size());
  for (const OperatorId id : order) {
    std::vector<OperatorId>& stream = by_stream.at(graph[id].stream);
    positions[id] = {graph[id].stream, static_cast<std::uint32_t>(stream.size())};
    stream.push_back(id);
  }
  FrozenBlock block;
  block.operators.reserve(graph.size());
  block.stream_begin.push_back(0);
  for (const std::vector<OperatorId>& stream : by_stream) {
    std::vector<std::uint32_t> waited(streams, 0);  // what this stream has waited for already
    for (const OperatorId id : stream) {
      const std::vector<std::uint32_t> counts = required_counts(graph, id, positions, streams);
      const Operator& op = graph[id];
      FrozenOperator frozen{op.work, id,      static_cast<std::uint32_t>(block.waits.size()),
                            0,       op.kind, op.category};
      append_waits(counts, waited, frozen, block.waits);
      block.operators.push_back(frozen);
    }
    block.stream_begin.push_back(static_cast<std::uint32_t>(block.operators.size()));
  }
  block.waits.shrink_to_fit();
  return block;
}

}  // namespace orrery
