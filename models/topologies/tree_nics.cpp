// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/tree_nics.h"

#include <fmt/core.h>

#include <string>

#include "models/topologies/fabric.h"
#include "models/topologies/tree_exchange.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

/// Names of the leaves, by leaf.
std::vector<NameId> leaf_names(const TreeNames& names, int leaves, Topology& topology) {
  std::vector<NameId> ids;
  ids.reserve(index(leaves));
  for (int leaf = 0; leaf < leaves; ++leaf) ids.push_back(topology.name(names.leaf(leaf)));
  return ids;
}

}  // namespace

TreeNics::TreeNics(const SystemConfig& system, const RankLayout& layout, const TreeShape& shape,
                   const TreeNames& names, Topology& topology)
    : layout_(layout), shape_(shape) {
  if (shared()) {
    add_shared(system.accelerator.host_link.bandwidth.value, names, topology);
  } else {
    add_own(names, topology);
  }
}

void TreeNics::append_up(int rank, Route& route) const {
  if (shared()) route.push_back({up_.slots[index(rank)]});
  route.push_back({up_.ports[index(rank)]});
}

void TreeNics::append_down(int rank, Route& route) const {
  route.push_back({down_.ports[index(rank)]});
  if (shared()) route.push_back({down_.slots[index(rank)]});
}

void TreeNics::add_up(int rank, double bytes, std::vector<double>& loads) const {
  loads[up_.ports[index(rank)]] += bytes;
  if (shared()) loads[up_.slots[index(rank)]] += bytes;
}

void TreeNics::add_down(int rank, double bytes, std::vector<double>& loads) const {
  loads[down_.ports[index(rank)]] += bytes;
  if (shared()) loads[down_.slots[index(rank)]] += bytes;
}

void TreeNics::draw(Topology::VertexId first_leaf, Topology& topology) const {
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const Topology::VertexId chip = topology.rank_vertex(rank);
    const Topology::VertexId leaf = first_leaf + index(tree_leaf(layout_, shape_, rank));
    const BundleId up = up_.ports[index(rank)], down = down_.ports[index(rank)];
    if (!shared()) {
      draw_pair(chip, leaf, shape_.port / layout_.dies, {up, down}, topology);
      continue;
    }
    const Topology::VertexId nic = first_nic_ + index(rank / ranks_per_nic());
    const BundleId out = up_.slots[index(rank)], in = down_.slots[index(rank)];
    draw_pair(chip, nic, topology.bundles()[out].capacity, {out, in}, topology);
    if (rank % ranks_per_nic() == 0) draw_pair(nic, leaf, shape_.port, {up, down}, topology);
  }
}

void TreeNics::add_own(const TreeNames& names, Topology& topology) {
  const BytesPerSecond port = shape_.port / layout_.dies;
  const std::vector<NameId> leaves = leaf_names(names, shape_.leaves(), topology);
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const NameId name = topology.rank_name_id(rank);
    const NameId leaf = leaves[index(tree_leaf(layout_, shape_, rank))];
    up_.ports.push_back(topology.add_bundle(name, leaf, {LinkKind::kScaleOut, port, 1, rank}));
    down_.ports.push_back(topology.add_bundle(leaf, name, {LinkKind::kScaleOut, port, 1, -1}));
  }
}

void TreeNics::add_shared(BytesPerSecond link, const TreeNames& names, Topology& topology) {
  const BytesPerSecond slot = (link > shape_.port ? link : shape_.port) / layout_.dies;
  first_nic_ = topology.vertices();
  const std::vector<NameId> leaves = leaf_names(names, shape_.leaves(), topology);
  NameId nic = 0;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank % ranks_per_nic() == 0) {
      const int in_node = rank % layout_.ranks_per_node / ranks_per_nic();
      const std::string text =
          fmt::format("{}/nic{}", node_name(layout_, layout_.node(rank)), in_node);
      topology.add_switch(text);
      nic = topology.name(text);
      const NameId leaf = leaves[index(tree_leaf(layout_, shape_, rank))];
      const auto next = static_cast<BundleId>(topology.bundles().size());
      up_.ports.insert(up_.ports.end(), index(ranks_per_nic()), next);
      down_.ports.insert(down_.ports.end(), index(ranks_per_nic()), next + 1);
      topology.add_bundle(nic, leaf, {LinkKind::kScaleOut, shape_.port, 1, -1});
      topology.add_bundle(leaf, nic, {LinkKind::kScaleOut, shape_.port, 1, -1});
    }
    const NameId name = topology.rank_name_id(rank);
    up_.slots.push_back(topology.add_bundle(name, nic, {LinkKind::kHost, slot, 1, rank}));
    down_.slots.push_back(topology.add_bundle(nic, name, {LinkKind::kHost, slot, 1, -1}));
  }
}

}  // namespace orrery
