// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_slice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "sim/config/diagnostics.h"
#include "sim/units/spelling.h"
#include "workloads/formats/base/whole_number.h"
#include "workloads/formats/dependencies.h"

namespace orrery {
namespace {

constexpr std::size_t kMostSuggested = 100'000;  ///< names that are looked at for a suggestion

bool in_ranges(const std::vector<GraphSelection::Range>& ranges, std::uint64_t number) {
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

void check_ranks_exist(const ImportedRun& run, const GraphSelection& selection) {
  const auto ranks = static_cast<std::uint64_t>(run.ranks());
  for (const auto& [first, last] : selection.ranks) {
    if (last < ranks) continue;
    throw config::ConfigError(
        fmt::format("there is no rank {}: the graph has ranks 0 to {}", last, ranks - 1));
  }
}

/// Nodes with an identifier, or with a name.
class NamedNodes {
 public:
  explicit NamedNodes(const std::string& text) : name_(text), id_(number_in<std::uint64_t>(text)) {}
  std::vector<NodeId> in(const ImportedGraph& graph) const {
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < graph.size(); ++node)
      if (id_ ? graph.ids[node] == *id_ : graph.name(node) == name_) nodes.push_back(node);
    return nodes;
  }

 private:
  std::string name_;
  std::optional<std::uint64_t> id_;
};

[[noreturn]] void refuse_unknown_node(const ImportedRun& run, const std::string& text) {
  std::set<std::string> names;
  for (const ImportedGraph& graph : run.graphs) {
    for (NodeId node = 0; node < graph.size() && names.size() < kMostSuggested; ++node)
      names.emplace(graph.name(node));
  }
  throw config::ConfigError(
      fmt::format("there is no node '{}', neither an identifier nor a name{}", text,
                  did_you_mean(nearest_name(text, {names.begin(), names.end()}))));
}

/// Nodes that can be reached, those where it begins included.
/// @param neighbours of a node
template <class Neighbours>
std::vector<bool> reached(std::vector<NodeId> from, std::size_t nodes,
                          const Neighbours& neighbours) {
  std::vector<bool> seen(nodes, false);
  for (const NodeId node : from) seen[node] = true;
  while (!from.empty()) {
    const NodeId node = from.back();
    from.pop_back();
    for (const NodeId other : neighbours(node)) {
      if (seen[other]) continue;
      seen[other] = true;
      from.push_back(other);
    }
  }
  return seen;
}

/// Which nodes of a graph hold all conditions, times apart.
class GraphConditions {
 public:
  GraphConditions(const ImportedRun& run, const GraphSelection& selection)
      : run_(run), selection_(selection) {}

  std::vector<bool> kept(const ImportedGraph& graph) {
    std::vector<bool> kept(graph.size());
    for (NodeId node = 0; node < graph.size(); ++node)
      kept[node] = in_ranges(selection_.ids, graph.ids[node]) && is_named(graph.name(node));
    const auto keep_reached = [&](const std::string& text, bool& found, const auto& neighbours) {
      const std::vector<NodeId> from = NamedNodes(text).in(graph);
      found = found || !from.empty();
      const std::vector<bool> wanted = reached(from, graph.size(), neighbours);
      for (NodeId node = 0; node < graph.size(); ++node) kept[node] = kept[node] && wanted[node];
    };
    if (!selection_.upstream_of.empty()) {
      const Earlier earlier(graph);
      keep_reached(selection_.upstream_of, found_upstream_,
                   [&](NodeId node) { return earlier.of(node); });
    }
    if (!selection_.downstream_of.empty())
      keep_reached(selection_.downstream_of, found_downstream_,
                   [&](NodeId node) { return next_of(graph, node); });
    return kept;
  }

  /// Once all graphs have been looked at.
  void check() const {
    if (!selection_.upstream_of.empty() && !found_upstream_)
      refuse_unknown_node(run_, selection_.upstream_of);
    if (!selection_.downstream_of.empty() && !found_downstream_)
      refuse_unknown_node(run_, selection_.downstream_of);
  }

 private:
  bool is_named(std::string_view name) const {
    return selection_.names.empty() ||
           std::any_of(selection_.names.begin(), selection_.names.end(),
                       [&](const auto& part) { return name.find(part) != std::string_view::npos; });
  }

  const ImportedRun& run_;
  const GraphSelection& selection_;
  bool found_upstream_ = false, found_downstream_ = false;
};

/// A part of a graph; the dependencies that are cut for it are counted in `all`.
ImportedGraph part_of_graph(const ImportedGraph& whole, const std::vector<bool>& kept,
                            GraphSlice& all) {
  constexpr NodeId kOut = ~NodeId{0};
  ImportedGraph graph;
  graph.works = whole.works;
  graph.messages = whole.messages;
  graph.kernels = whole.kernels;
  graph.streams = whole.streams;
  std::vector<NodeId> place(whole.size(), kOut);
  NamesInStream names;
  for (NodeId node = 0; node < whole.size(); ++node) {
    if (!kept[node]) continue;
    place[node] = static_cast<NodeId>(graph.ids.size());
    graph.nodes.push_back(whole.nodes[node]);
    graph.nodes.back().waits = 0;
    graph.ids.push_back(whole.ids[node]);
    graph.names.push_back(names.add(graph.pool, whole.name(node)));
  }
  graph.nodes.emplace_back();
  for (NodeId node = 0; node < whole.size(); ++node) {
    if (kept[node])
      graph.nodes[place[node]].first_next = static_cast<std::uint32_t>(graph.next.size());
    for (const NodeId later : next_of(whole, node)) {
      if (kept[node] && kept[later]) {
        graph.next.push_back(place[later]);
        ++graph.nodes[place[later]].waits;
      } else {
        all.next_cut += kept[node] ? 1 : 0;
        all.waits_cut += kept[later] ? 1 : 0;
      }
    }
  }
  graph.nodes.back().first_next = static_cast<std::uint32_t>(graph.next.size());
  return graph;
}

/// Works and messages that no node of a part has are dropped.
void drop_unused(ImportedGraph& graph) {
  std::vector<NodeWork> works;
  std::vector<ImportedMessage> messages;
  std::map<std::uint32_t, std::uint32_t> of_messages;
  for (NodeId id = 0; id < graph.size(); ++id) {
    ImportedNode& node = graph.nodes[id];
    if (node.kind <= NodeKind::kKernel) {
      works.push_back(graph.works[node.work]);
      node.work = static_cast<std::uint32_t>(works.size() - 1);
      continue;
    }
    const auto [known, is_new] =
        of_messages.try_emplace(node.work, static_cast<std::uint32_t>(messages.size()));
    if (is_new) messages.push_back(graph.messages[node.work]);
    node.work = known->second;
  }
  graph.works = std::move(works);
  graph.messages = std::move(messages);
}

}  // namespace

GraphSlice slice(const ImportedRun& run, const GraphSelection& selection, const NodeTimes& begins) {
  check_ranks_exist(run, selection);
  GraphSlice part;
  part.run.groups = run.groups;
  part.run.graph_of_rank.assign(run.graph_of_rank.size(), ImportedRun::kAbsent);
  GraphConditions conditions(run, selection);
  std::map<std::uint32_t, std::vector<bool>> kept_of_graph;
  // Ranks that share a graph share its part, if it is the same.
  std::map<std::pair<std::uint32_t, std::vector<bool>>, std::uint32_t> parts;
  for (std::size_t rank = 0; rank < run.graph_of_rank.size(); ++rank) {
    const std::uint32_t number = run.graph_of_rank[rank];
    if (number == ImportedRun::kAbsent) continue;
    const ImportedGraph& whole = run.graphs[number];
    if (!in_ranges(selection.ranks, rank)) {
      part.left_out += whole.size();
      continue;
    }
    const auto [known, is_new] = kept_of_graph.try_emplace(number);
    if (is_new) known->second = conditions.kept(whole);
    std::vector<bool> kept = known->second;
    for (NodeId node = 0; node < whole.size() && selection.timed(); ++node) {
      const Picoseconds begin = begins.at(rank).at(node);
      kept[node] = kept[node] && begin >= selection.from.value_or(0) &&
                   (!selection.until || begin < *selection.until);
    }
    ImportedGraph cut = part_of_graph(whole, kept, part);
    part.nodes += cut.size();
    part.left_out += whole.size() - cut.size();
    if (cut.size() == 0) continue;
    const auto [place, is_first] = parts.try_emplace(
        {number, std::move(kept)}, static_cast<std::uint32_t>(part.run.graphs.size()));
    part.run.graph_of_rank[rank] = place->second;
    if (!is_first) continue;
    drop_unused(cut);
    part.run.graphs.push_back(std::move(cut));
  }
  conditions.check();
  if (part.nodes == 0) throw config::ConfigError("no node is left");
  return part;
}

}  // namespace orrery
