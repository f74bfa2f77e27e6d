// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/topology.h"

#include <stdexcept>
#include <utility>

#include "sim/graph/topology_boost.h"

namespace orrery {

/// "leaf" of "group0/leaf3".
std::string_view end_class(std::string_view end) {
  end.remove_prefix(end.rfind('/') + 1);  // npos + 1 is 0
  while (!end.empty() && end.back() >= '0' && end.back() <= '9') end.remove_suffix(1);
  return end;
}

namespace {

constexpr std::string_view kArrow = "->";

}  // namespace

std::string link_class(std::string_view name) {
  const std::size_t arrow = name.find(kArrow);
  if (arrow == std::string_view::npos) return std::string(end_class(name));
  return std::string(end_class(name.substr(0, arrow)))
      .append(kArrow)
      .append(end_class(name.substr(arrow + kArrow.size())));
}

Topology::Topology() : graph_(std::make_unique<Graph>()) {}

Topology::Topology(const Topology& other)
    : graph_(std::make_unique<Graph>(*other.graph_)),
      names_(other.names_),
      bundles_(other.bundles_),
      ends_(other.ends_),
      rank_vertices_(other.rank_vertices_) {}

Topology::Topology(Topology&& other) noexcept = default;

Topology& Topology::operator=(const Topology& other) { return *this = Topology(other); }

Topology& Topology::operator=(Topology&& other) noexcept = default;

Topology::~Topology() = default;

Topology::VertexId Topology::add_rank(std::string_view name) {
  const VertexId vertex = boost::add_vertex(Vertex{names_.add(name), ranks()}, *graph_);
  rank_vertices_.push_back(vertex);
  return vertex;
}

Topology::VertexId Topology::add_switch(std::string_view name) {
  return boost::add_vertex(Vertex{names_.add(name)}, *graph_);
}

BundleId Topology::add_bundle(NameId from, NameId to, const Bundle& bundle) {
  ends_.push_back({from, to});
  bundles_.push_back(bundle);
  return static_cast<BundleId>(bundles_.size() - 1);
}

std::string Topology::bundle_name(BundleId bundle) const {
  const Ends& ends = ends_.at(bundle);
  return std::string(names_.at(ends.from)).append(kArrow).append(names_.at(ends.to));
}

void Topology::add_link(VertexId from, VertexId to, BytesPerSecond capacity, BundleId bundle) {
  if (bundle >= bundles_.size()) throw std::out_of_range("a link of no bundle");
  boost::add_edge(from, to, Link{capacity, bundle}, *graph_);
}

std::size_t Topology::vertices() const { return boost::num_vertices(*graph_); }

std::string Topology::vertex_name(VertexId vertex) const {
  return std::string(names_.at((*graph_)[vertex].name));
}

NameId Topology::rank_name_id(int rank) const { return (*graph_)[rank_vertex(rank)].name; }

std::size_t Topology::link_count(LinkKind kind) const {
  std::size_t count = 0;
  for (const Bundle& bundle : bundles_) {
    if (bundle.kind == kind) count += static_cast<std::size_t>(bundle.links);
  }
  return count;
}

LinkKind link_kind(const Topology& topology, LinkId link) {
  return topology.bundles()[topology.graph()[link].bundle].kind;
}

std::string link_name(const Topology& topology, LinkId link) {
  const Topology::Graph& graph = topology.graph();
  return topology.vertex_name(boost::source(link, graph)) + "->" +
         topology.vertex_name(boost::target(link, graph));
}

}  // namespace orrery
