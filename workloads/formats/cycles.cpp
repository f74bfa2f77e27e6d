// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/cycles.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "workloads/formats/dependencies.h"

namespace orrery {
namespace {

constexpr std::size_t kMostStarts = 4096;
constexpr NodeId kNobody = ~NodeId{0};

/// Nodes that are left when those that wait for nothing end, and those that wait for them, and so
/// on: nodes on cycles, and behind them.
std::vector<bool> never_start(const ImportedGraph& graph) {
  std::vector<bool> left(graph.size(), true);
  in_order(graph, [&](NodeId node) { left[node] = false; });
  return left;
}

/// The shortest way from a node back to it through nodes that never start, shorter than `below`;
/// empty: there is none.
std::vector<NodeId> shortest_way_back(const ImportedGraph& graph, const std::vector<bool>& left,
                                      NodeId start, std::size_t below,
                                      std::vector<NodeId>& came_from) {
  std::vector<NodeId> reached = {start};
  std::vector<NodeId> way;
  std::size_t level_end = 1, length = 1;
  for (std::size_t i = 0; i < reached.size() && way.empty() && length < below; ++i) {
    if (i == level_end) {
      level_end = reached.size();
      if (++length >= below) break;
    }
    const NodeId node = reached[i];
    for (const NodeId next : next_of(graph, node)) {
      if (next == start) {
        for (NodeId at = node; at != start; at = came_from[at]) way.push_back(at);
        way.push_back(start);
        std::reverse(way.begin(), way.end());
        break;
      }
      if (!left[next] || came_from[next] != kNobody) continue;
      came_from[next] = node;
      reached.push_back(next);
    }
  }
  for (const NodeId node : reached) came_from[node] = kNobody;
  return way;
}

}  // namespace

std::vector<NodeId> shortest_cycle(const ImportedGraph& graph) {
  const std::vector<bool> left = never_start(graph);
  std::vector<NodeId> came_from(graph.size(), kNobody), best;
  std::size_t starts = 0;
  for (NodeId node = 0; node < graph.size() && starts < kMostStarts && best.size() != 1; ++node) {
    if (!left[node]) continue;
    ++starts;
    std::vector<NodeId> way = shortest_way_back(
        graph, left, node, best.empty() ? graph.size() + 1 : best.size(), came_from);
    if (!way.empty()) best = std::move(way);
  }
  return best;
}

std::vector<bool> dependencies_that_lead_back(const ImportedGraph& graph) {
  enum class State : std::uint8_t { kNew, kOnTheWay, kDone };
  std::vector<bool> back(graph.next.size(), false);
  std::vector<State> states(graph.size(), State::kNew);
  struct Place {
    NodeId node;
    std::uint32_t next;
  };
  std::vector<Place> way;
  for (NodeId start = 0; start < graph.size(); ++start) {
    if (states[start] != State::kNew) continue;
    states[start] = State::kOnTheWay;
    way.push_back({start, graph.nodes[start].first_next});
    while (!way.empty()) {
      Place& place = way.back();
      if (place.next == graph.nodes[place.node + 1].first_next) {
        states[place.node] = State::kDone;
        way.pop_back();
        continue;
      }
      const std::uint32_t edge = place.next++;
      const NodeId next = graph.next[edge];
      if (states[next] == State::kOnTheWay) back[edge] = true;
      if (states[next] != State::kNew) continue;
      states[next] = State::kOnTheWay;
      way.push_back({next, graph.nodes[next].first_next});
    }
  }
  return back;
}

}  // namespace orrery
