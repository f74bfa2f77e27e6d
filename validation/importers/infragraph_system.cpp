// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/infragraph.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

bool is_accelerator(const InfraVertex& vertex) {
  return vertex.type == "xpu" || vertex.type == "npu";  // npu: before v0.5.0
}

bool is_of_host(const InfraVertex& vertex) {
  return vertex.type == "cpu" || vertex.type == "memory" || vertex.type == "nic";
}

Seconds whole_picoseconds(Seconds time) { return Seconds(std::round(time.base() * 1e12) / 1e12); }

std::string ports_block(InfraKind kind) {
  return kind == InfraKind::kHost ? "host_link" : wire_kind(kind);
}

}  // namespace

const char* wire_kind(InfraKind kind) {
  return kind == InfraKind::kScaleUp ? "scale_up" : kind == InfraKind::kHost ? "host" : "scale_out";
}

InfraPorts::InfraPorts(const std::string& accelerator) : name_(accelerator) {
  const config::Library& library = config::default_library();
  config::Diagnostics diagnostics;
  node_ = config::load_file(library.locate("accelerators", accelerator, ""), diagnostics, library,
                            "accelerators");
  diagnostics.throw_if_errors();
}

std::optional<BytesPerSecond> InfraPorts::told(InfraKind kind) const {
  const config::Node* value = node_.at_path(ports_block(kind) + ".bandwidth");
  if (value != nullptr && value->is_map()) value = value->find("value");
  if (value == nullptr || !value->is_scalar()) return {};
  return parse<BytesPerSecond>(value->text());
}

BytesPerSecond InfraPorts::of(InfraKind kind) const {
  if (const auto bandwidth = told(kind)) return *bandwidth;
  throw config::ConfigError(fmt::format(
      "accelerator {} has no {}.bandwidth for links whose bandwidth the file does not tell", name_,
      ports_block(kind)));
}

InfraSystem::InfraSystem(std::string path, InfraGraph graph)
    : path_(std::move(path)), graph_(std::move(graph)), at_(graph_.vertices.size()) {
  for (std::size_t edge = 0; edge < graph_.edges.size(); ++edge) {
    at_[graph_.edges[edge].from].push_back(edge);
    at_[graph_.edges[edge].to].push_back(edge);
  }
  for (std::size_t vertex = 0; vertex < graph_.vertices.size(); ++vertex)
    if (is_accelerator(graph_.vertices[vertex])) ranks_.push_back(vertex);
  if (ranks_.empty()) throw config::ConfigError(path_ + ": there is no component of type xpu");
  find_kinds();
  find_latencies();
}

std::size_t InfraSystem::accelerators_of_copy() const {
  std::map<int, std::size_t> counts;
  for (const std::size_t rank : ranks_) ++counts[graph_.vertices[rank].copy];
  const std::size_t first = counts.begin()->second;
  const bool alike = std::all_of(counts.begin(), counts.end(),
                                 [&](const auto& count) { return count.second == first; });
  return alike ? first : 0;
}

std::size_t InfraSystem::processors() const {
  return static_cast<std::size_t>(
      std::count_if(graph_.vertices.begin(), graph_.vertices.end(),
                    [](const InfraVertex& vertex) { return vertex.type == "cpu"; }));
}

Seconds InfraSystem::step_latency() const { return whole_picoseconds(nearest_.latency); }

Seconds InfraSystem::hop_latency() const {
  const int further = farthest_.links - nearest_.links;
  if (further <= 0 || farthest_.latency <= nearest_.latency) return {};
  return whole_picoseconds((farthest_.latency - nearest_.latency) / static_cast<double>(further));
}

void InfraSystem::fill_bandwidths(const InfraPorts* ports) {
  std::vector<std::optional<BytesPerSecond>> found(graph_.edges.size());
  std::map<InfraKind, int> of_ports;
  int of_neighbours = 0;
  for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
    const InfraEdge& edge = graph_.edges[i];
    if (edge.bandwidth) continue;
    if (!rank_of(edge.from) && !rank_of(edge.to)) found[i] = largest_beside(edge);
    if (found[i]) {
      ++of_neighbours;
      continue;
    }
    ++of_ports[kinds_[i]];
    if (ports == nullptr)
      throw config::ConfigError(
          fmt::format("{}: the bandwidth between {} and {} is not told; name the accelerator with "
                      "--accelerator, whose ports then have it",
                      path_, name_of(edge.from), name_of(edge.to)));
    found[i] = ports->of(kinds_[i]) / static_cast<double>(sharing(i));
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i]) graph_.edges[i].bandwidth = found[i];
  if (of_neighbours > 0)
    graph_.notes.push_back(fmt::format(
        "no bandwidth: {} edges, which have that of the links at their ends", of_neighbours));
  for (const auto& [kind, count] : of_ports)
    graph_.notes.push_back(
        fmt::format("no bandwidth: {} edges of kind {}, which have that of the accelerator's ports",
                    count, wire_kind(kind)));
}

std::optional<std::pair<BytesPerSecond, int>> InfraSystem::ports() const {
  std::optional<std::pair<BytesPerSecond, int>> all;
  for (const std::size_t rank : ranks_) {
    std::pair<BytesPerSecond, int> own{BytesPerSecond(0), 0};
    for (const std::size_t edge : at_[rank]) {
      if (kinds_[edge] != InfraKind::kScaleUp) continue;
      own.first += *graph_.edges[edge].bandwidth;
      ++own.second;
    }
    if (own.second == 0 || (all && *all != own)) return {};
    all = own;
  }
  return all;
}

std::vector<std::vector<ImportedCell>> InfraSystem::rows() const {
  std::map<std::tuple<std::string, std::string, InfraKind, double>, std::int64_t> wires;
  for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
    const InfraEdge& edge = graph_.edges[i];
    ++wires[{name_of(edge.from), name_of(edge.to), kinds_[i], edge.bandwidth->base()}];
  }
  std::vector<std::vector<ImportedCell>> rows;
  for (const auto& [wire, links] : wires) {
    const auto& [from, to, kind, bandwidth] = wire;
    rows.push_back({from, to, std::string(wire_kind(kind)), links, bandwidth});
  }
  return rows;
}

std::optional<std::size_t> InfraSystem::rank_of(std::size_t vertex) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), vertex);
  if (found == ranks_.end() || *found != vertex) return {};
  return static_cast<std::size_t>(found - ranks_.begin());
}

/// "accelerator3", or the name in the file.
std::string InfraSystem::name_of(std::size_t vertex) const {
  if (const auto rank = rank_of(vertex)) return "accelerator" + std::to_string(*rank);
  return graph_.vertices[vertex].name;
}

std::size_t InfraSystem::other_end(std::size_t edge, std::size_t vertex) const {
  return graph_.edges[edge].from == vertex ? graph_.edges[edge].to : graph_.edges[edge].from;
}

/// What processors, memory and NICs of servers reach without passing an accelerator, by vertex.
std::vector<bool> InfraSystem::parts_of_hosts(const std::vector<bool>& has_ranks) const {
  std::vector<bool> of_host(graph_.vertices.size());
  std::vector<std::size_t> next;
  const auto reach = [&](std::size_t vertex) {
    if (of_host[vertex] || rank_of(vertex)) return;
    of_host[vertex] = true;
    next.push_back(vertex);
  };
  for (std::size_t vertex = 0; vertex < graph_.vertices.size(); ++vertex) {
    const auto copy = static_cast<std::size_t>(graph_.vertices[vertex].copy);
    if (has_ranks[copy] && is_of_host(graph_.vertices[vertex])) reach(vertex);
  }
  while (!next.empty()) {
    const std::size_t vertex = next.back();
    next.pop_back();
    for (const std::size_t edge : at_[vertex]) reach(other_end(edge, vertex));
  }
  return of_host;
}

void InfraSystem::find_kinds() {
  std::vector<bool> has_ranks(static_cast<std::size_t>(graph_.copies));
  for (const std::size_t rank : ranks_)
    has_ranks[static_cast<std::size_t>(graph_.vertices[rank].copy)] = true;
  const std::vector<bool> of_host = parts_of_hosts(has_ranks);
  for (const InfraEdge& edge : graph_.edges) {
    const int copy = graph_.vertices[edge.from].copy;
    const bool inside = copy == graph_.vertices[edge.to].copy;
    if (!of_host[edge.from] && !of_host[edge.to]) {
      kinds_.push_back(InfraKind::kScaleUp);
    } else {
      kinds_.push_back(inside && has_ranks[static_cast<std::size_t>(copy)] ? InfraKind::kHost
                                                                           : InfraKind::kScaleOut);
    }
  }
}

/// Routes from an accelerator to all others, as a system of kind graph takes them.
std::vector<InfraSystem::Route> InfraSystem::routes_from(std::size_t rank) const {
  constexpr int kDetour = 1000;
  constexpr int kNone = std::numeric_limits<int>::max();
  std::vector<int> distance(graph_.vertices.size(), kNone);
  std::vector<Route> routes(graph_.vertices.size());
  std::priority_queue<std::pair<int, std::size_t>> next;
  distance[rank] = 0;
  next.emplace(0, rank);
  while (!next.empty()) {
    const auto [far, vertex] = next.top();
    next.pop();
    if (-far != distance[vertex]) continue;
    for (const std::size_t edge : at_[vertex]) {
      const std::size_t to = other_end(edge, vertex);
      const int length = -far + (kinds_[edge] == InfraKind::kHost ? kDetour : 1);
      if (length >= distance[to]) continue;
      distance[to] = length;
      const std::optional<Seconds>& latency = graph_.edges[edge].latency;
      routes[to] = {routes[vertex].links + 1, routes[vertex].latency + latency.value_or(Seconds()),
                    routes[vertex].told || latency.has_value()};
      next.emplace(-length, to);
    }
  }
  for (const std::size_t other : ranks_)
    if (distance[other] == kNone)
      throw config::ConfigError(fmt::format("{}: no edges lead from {} to {}", path_,
                                            graph_.vertices[rank].name,
                                            graph_.vertices[other].name));
  return routes;
}

void InfraSystem::find_latencies() {
  bool first = true;
  for (const std::size_t rank : ranks_) {
    const std::vector<Route> routes = routes_from(rank);
    for (const std::size_t other : ranks_) {
      if (other == rank) continue;
      if (first || routes[other].links < nearest_.links) nearest_ = routes[other];
      if (first || routes[other].links > farthest_.links) farthest_ = routes[other];
      first = false;
    }
  }
}

std::optional<BytesPerSecond> InfraSystem::largest_beside(const InfraEdge& edge) const {
  std::optional<BytesPerSecond> largest;
  for (const std::size_t end : {edge.from, edge.to}) {
    for (const std::size_t other : at_[end]) {
      const std::optional<BytesPerSecond>& told = graph_.edges[other].bandwidth;
      if (told && (!largest || *told > *largest)) largest = told;
    }
  }
  return largest;
}

/// Edges of an accelerator whose bandwidth is not told and which share its ports with this one.
int InfraSystem::sharing(std::size_t edge) const {
  const std::size_t from = graph_.edges[edge].from, to = graph_.edges[edge].to;
  if (!rank_of(from) && !rank_of(to)) return 1;
  const std::size_t rank = rank_of(from) ? from : to;
  return static_cast<int>(std::count_if(at_[rank].begin(), at_[rank].end(), [&](std::size_t other) {
    return !graph_.edges[other].bandwidth && kinds_[other] == kinds_[edge];
  }));
}

}  // namespace orrery
