// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/config/diagnostics.h"
#include "workloads/formats/cycles.h"

namespace orrery {
namespace {

constexpr NodeId kUnknown = ~NodeId{0};
constexpr std::size_t kMostListed = 8;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15ULL ^ (hash >> 29U);
}
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

class NodesById {
 public:
  NodesById(const std::vector<std::uint64_t>& ids, bool ascending) : ids_(ids) {
    if (ascending) return;
    order_.resize(ids.size());
    std::iota(order_.begin(), order_.end(), NodeId{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](NodeId a, NodeId b) { return ids[a] < ids[b]; });
  }

  /// A node whose identifier an earlier one has; kUnknown: there is none.
  NodeId doubled() const {
    NodeId first = kUnknown;
    for (std::size_t i = 1; i < order_.size(); ++i)
      if (ids_[order_[i]] == ids_[order_[i - 1]]) first = std::min(first, order_[i]);
    return first;
  }

  NodeId find(std::uint64_t id) const {
    if (order_.empty()) return find_ascending(ids_, id);
    const auto at = std::lower_bound(order_.begin(), order_.end(), id,
                                     [&](NodeId node, std::uint64_t v) { return ids_[node] < v; });
    return at == order_.end() || ids_[*at] != id ? kUnknown : *at;
  }

  static NodeId find_ascending(const std::vector<std::uint64_t>& ids, std::uint64_t id) {
    if (ids.empty() || id < ids.front() || id > ids.back()) return kUnknown;
    const std::uint64_t guess = id - ids.front();
    if (guess < ids.size() && ids[guess] == id) return static_cast<NodeId>(guess);
    const auto at = std::lower_bound(ids.begin(), ids.end(), id);
    return *at == id ? static_cast<NodeId>(at - ids.begin()) : kUnknown;
  }

 private:
  const std::vector<std::uint64_t>& ids_;
  std::vector<NodeId> order_;  ///< nodes by identifier; empty: as they are
};

std::string quoted(const ImportedGraph& graph, NodeId node) {
  return fmt::format("{} '{}'", graph.ids[node], graph.name(node));
}

/// Fills `next` and the counts of the nodes from the dependencies.
void connect(ImportedGraph& graph, const std::vector<Dependency>& dependencies) {
  const std::size_t nodes = graph.ids.size();
  for (ImportedNode& node : graph.nodes) node.first_next = node.waits = 0;
  for (const Dependency& d : dependencies) {
    ++graph.nodes[d.earlier + 1].first_next;
    ++graph.nodes[d.later].waits;
  }
  for (std::size_t i = 1; i <= nodes; ++i)
    graph.nodes[i].first_next += graph.nodes[i - 1].first_next;
  graph.next.resize(dependencies.size());
  // Each node's place moves on to the end of its part, which is where the next one's begins.
  for (const Dependency& d : dependencies)
    graph.next[graph.nodes[d.earlier].first_next++] = d.later;
  for (std::size_t i = nodes; i > 0; --i) graph.nodes[i].first_next = graph.nodes[i - 1].first_next;
  graph.nodes[0].first_next = 0;
}

/// Dependencies of a graph, but for those that `drops` marks.
std::vector<Dependency> dependencies_of(const ImportedGraph& graph,
                                        const std::vector<bool>& drops = {}) {
  std::vector<Dependency> kept;
  kept.reserve(graph.next.size());
  for (NodeId node = 0; node < graph.size(); ++node) {
    for (std::uint32_t e = graph.nodes[node].first_next; e < graph.nodes[node + 1].first_next; ++e)
      if (drops.empty() || !drops[e]) kept.push_back({graph.next[e], node});
  }
  return kept;
}

[[noreturn]] void refuse_cycle(const ImportedGraph& graph, const std::vector<NodeId>& cycle,
                               const std::string& file) {
  std::string text =
      fmt::format("{}: {} {}", file, cycle.size(),
                  cycle.size() == 1 ? "node waits for itself: " : "nodes wait for each other: ");
  for (std::size_t i = 0; i < cycle.size() && i < kMostListed; ++i) {
    if (i > 0) text += " before ";
    text += quoted(graph, cycle[i]);
  }
  if (cycle.size() > kMostListed) text += " before others";
  if (cycle.size() > 1) text += fmt::format(" before {} again", quoted(graph, cycle.front()));
  throw config::ConfigError(text + "\n  --repair drops dependencies that close cycles");
}

}  // namespace

void add_dependencies(ImportedGraph& graph, const std::vector<Dependency>& more) {
  std::vector<Dependency> all = dependencies_of(graph);
  all.insert(all.end(), more.begin(), more.end());
  connect(graph, all);
}

std::size_t GraphBuilder::Hash::operator()(const Kernel& k) const {
  std::uint64_t hash =
      mixed(static_cast<std::uint64_t>(k.kind), static_cast<unsigned>(k.precision));
  for (const std::int64_t size : {k.batch, k.m, k.n, k.k})
    hash = mixed(hash, static_cast<std::uint64_t>(size));
  for (const double amount :
       {k.matrix_flops.base(), k.vector_flops.base(), k.read.base(), k.written.base()})
    hash = mixed(hash, bits(amount));
  return hash;
}

std::size_t GraphBuilder::Hash::operator()(const ImportedMessage& m) const {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(m.kind), m.group);
  for (const std::uint64_t part : {bits(m.bytes.base()), static_cast<std::uint64_t>(m.peer),
                                   static_cast<std::uint64_t>(m.tag), m.recorded})
    hash = mixed(hash, part);
  return hash;
}

std::uint16_t GraphBuilder::stream(std::string_view name, bool serial) {
  for (std::size_t i = 0; i < graph_.streams.size(); ++i)
    if (graph_.streams[i].name == name) return static_cast<std::uint16_t>(i);
  if (graph_.streams.size() == std::numeric_limits<std::uint16_t>::max())
    throw config::ConfigError("a graph has at most 65,535 streams");
  graph_.streams.push_back({std::string(name), serial});
  return static_cast<std::uint16_t>(graph_.streams.size() - 1);
}

std::uint32_t GraphBuilder::kernel(const Kernel& kernel) {
  Kernel unnamed = kernel;
  unnamed.name.clear();
  const auto [known, is_new] =
      kernels_.try_emplace(std::move(unnamed), static_cast<std::uint32_t>(graph_.kernels.size()));
  if (is_new) graph_.kernels.push_back(kernel);
  return known->second;
}

void GraphBuilder::computes(NodeId node, std::uint32_t kernel, KernelClass kind) {
  NodeWork& work = graph_.works[graph_.nodes[node].work];
  work.kernel = kernel;
  work.kind = kind;
  work.classified = true;
}

void GraphBuilder::shares_tensors(NodeId node) {
  const auto known =
      std::lower_bound(tensors_.begin(), tensors_.end(), node,
                       [](const NodeTensors& one, NodeId id) { return one.node < id; });
  if (known != tensors_.end() && known->node == node) known->shared = true;
}

NodeId GraphBuilder::add_node(std::uint64_t id, std::string_view name, const ImportedNode& node) {
  const auto number = static_cast<NodeId>(graph_.ids.size());
  if (number == kUnknown - 1) throw config::ConfigError("a graph has at most 4 G nodes");
  ascending_ = ascending_ && (graph_.ids.empty() || graph_.ids.back() < id);
  graph_.ids.push_back(id);
  graph_.names.push_back(names_.add(graph_.pool, name));
  graph_.nodes.push_back(node);
  return number;
}

NodeId GraphBuilder::add(std::uint64_t id, std::string_view name, NodeKind kind,
                         std::uint16_t stream, const NodeWork& work) {
  graph_.works.push_back(work);
  return add_node(id, name,
                  {static_cast<std::uint32_t>(graph_.works.size() - 1), 0, 0, stream, kind});
}

NodeId GraphBuilder::add(std::uint64_t id, std::string_view name, NodeKind kind,
                         std::uint16_t stream, const ImportedMessage& message) {
  const auto [known, is_new] =
      messages_.try_emplace(message, static_cast<std::uint32_t>(graph_.messages.size()));
  if (is_new) graph_.messages.push_back(message);
  return add_node(id, name, {known->second, 0, 0, stream, kind});
}

void GraphBuilder::reserve(std::size_t nodes, std::size_t dependencies) {
  graph_.nodes.reserve(nodes + 1);
  graph_.ids.reserve(nodes);
  graph_.names.reserve(nodes);
  graph_.works.reserve(nodes);
  dependencies_.reserve(dependencies);
}

void GraphBuilder::depends(NodeId later, std::uint64_t earlier_id) {
  const NodeId known = ascending_ ? NodesById::find_ascending(graph_.ids, earlier_id) : kUnknown;
  if (known != kUnknown) {
    dependencies_.push_back({later, known});
  } else {
    references_.push_back({later, earlier_id});
  }
}

void GraphBuilder::follows(NodeId later, NodeId earlier) {
  dependencies_.push_back({later, earlier});
}

void GraphBuilder::resolve(const std::string& file, bool repair, std::vector<std::string>& notes) {
  const NodesById nodes(graph_.ids, ascending_);
  if (const NodeId node = nodes.doubled(); node != kUnknown)
    throw config::ConfigError(fmt::format("{}: a second node {}", file, quoted(graph_, node)));
  std::size_t missing = 0;
  std::string list;
  for (const Reference& reference : references_) {
    const NodeId earlier = nodes.find(reference.earlier_id);
    if (earlier != kUnknown) {
      dependencies_.push_back({reference.later, earlier});
    } else if (++missing <= kMostListed) {
      list += fmt::format("\n  node {} waits for {}", quoted(graph_, reference.later),
                          reference.earlier_id);
    }
  }
  references_ = std::vector<Reference>();  // {} would keep the room
  if (missing == 0) return;
  if (missing > kMostListed) list += fmt::format("\n  and {} more", missing - kMostListed);
  const std::string text = fmt::format("{}: {} {} on nodes that are not there", file, missing,
                                       missing == 1 ? "dependency" : "dependencies");
  if (!repair) throw config::ConfigError(text + ":" + list + "\n  --repair drops them");
  notes.push_back(text + ", dropped");
}

ImportedGraph GraphBuilder::finish(const std::string& file, bool repair,
                                   std::vector<std::string>& notes) {
  resolve(file, repair, notes);
  if (dependencies_.size() > std::numeric_limits<std::uint32_t>::max())
    throw config::ConfigError(file + ": more than 4 G dependencies");
  graph_.nodes.emplace_back();  // the end of the last one's `next`
  connect(graph_, dependencies_);
  dependencies_ = std::vector<Dependency>();
  names_ = {};
  if (const std::vector<NodeId> cycle = shortest_cycle(graph_); !cycle.empty()) {
    if (!repair) refuse_cycle(graph_, cycle, file);
    const std::vector<bool> back = dependencies_that_lead_back(graph_);
    connect(graph_, dependencies_of(graph_, back));
    const auto dropped = std::count(back.begin(), back.end(), true);
    notes.push_back(fmt::format("{}: {} {} in cycles, dropped", file, dropped,
                                dropped == 1 ? "dependency" : "dependencies"));
  }
  return std::move(graph_);
}

}  // namespace orrery
