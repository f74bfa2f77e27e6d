// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/topology.h"

#include <stdexcept>
#include <utility>

namespace orrery {

const char* to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::kOnPackage:
      return "on_package";
    case LinkKind::kScaleUp:
      return "scale_up";
    case LinkKind::kScaleOut:
      return "scale_out";
    case LinkKind::kHost:
      return "host";
  }
  return "?";
}

namespace {

/// "leaf" of "group0/leaf3".
std::string_view end_class(std::string_view end) {
  end.remove_prefix(end.rfind('/') + 1);  // npos + 1 is 0
  while (!end.empty() && end.back() >= '0' && end.back() <= '9') end.remove_suffix(1);
  return end;
}

}  // namespace

std::string link_class(std::string_view name) {
  constexpr std::string_view kArrow = "->";
  const std::size_t arrow = name.find(kArrow);
  if (arrow == std::string_view::npos) return std::string(end_class(name));
  return std::string(end_class(name.substr(0, arrow)))
      .append(kArrow)
      .append(end_class(name.substr(arrow + kArrow.size())));
}

Topology::VertexId Topology::add_rank(std::string name) {
  const VertexId vertex = boost::add_vertex(Vertex{std::move(name), ranks()}, graph_);
  rank_vertices_.push_back(vertex);
  return vertex;
}

Topology::VertexId Topology::add_switch(std::string name) {
  return boost::add_vertex(Vertex{std::move(name)}, graph_);
}

BundleId Topology::add_bundle(Bundle bundle) {
  bundles_.push_back(std::move(bundle));
  return static_cast<BundleId>(bundles_.size() - 1);
}

void Topology::add_link(VertexId from, VertexId to, BytesPerSecond capacity, BundleId bundle) {
  if (bundle >= bundles_.size()) throw std::out_of_range("a link of no bundle");
  boost::add_edge(from, to, Link{capacity, bundle}, graph_);
}

std::string Topology::name(LinkId link) const {
  return graph_[boost::source(link, graph_)].name + "->" + graph_[boost::target(link, graph_)].name;
}

std::size_t Topology::link_count(LinkKind kind) const {
  std::size_t count = 0;
  for (const Bundle& bundle : bundles_) {
    if (bundle.kind == kind) count += static_cast<std::size_t>(bundle.links);
  }
  return count;
}

}  // namespace orrery
