// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/fabric.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {

RankLayout rank_layout(const SystemConfig& system, int systems) {
  if (systems < 1 || system.accelerators.value < 1 || system.packages_per_node() < 1 ||
      system.accelerator.dies < 1) {
    throw config::KeyError(
        {"nodes", "system.accelerators", "system.accelerators_per_node", "system.accelerator.dies"},
        "nodes, accelerators, accelerators_per_node and dies must be positive");
  }
  if (system.accelerators.value % system.packages_per_node() != 0) {
    throw config::KeyError(
        {"system.accelerators_per_node", "system.accelerators"},
        fmt::format("accelerators_per_node ({}) does not divide accelerators ({})",
                    system.packages_per_node(), system.accelerators.value));
  }
  return {.dies = system.accelerator.dies,
          .ranks_per_node = system.ranks_per_node(),
          .ranks_per_system = system.ranks(),
          .systems = systems};
}

std::string node_name(const RankLayout& layout, int node) {
  const int nodes = layout.ranks_per_system / layout.ranks_per_node;
  return fmt::format("system{}/node{}", node / nodes, node % nodes);
}

std::string rank_name(const RankLayout& layout, int rank) {
  const std::string name =
      fmt::format("{}/accelerator{}", node_name(layout, layout.node(rank)), layout.rail(rank));
  return layout.dies > 1 ? fmt::format("{}/die{}", name, rank % layout.dies) : name;
}

void Fabric::append_host_route(int /*rank*/, HostEnd /*end*/, bool /*outward*/,
                               Route& /*route*/) const {
  throw std::logic_error("this network has no links to host boards");
}

int Fabric::hops(int source, int destination) const {
  Route route;
  append_route(source, destination, route);
  double crossed = 0;
  for (const Hop& hop : route) crossed += hop.share;
  return static_cast<int>(std::lround(crossed));
}

void Fabric::add_exchange(std::span<const int> group, double bytes,
                          std::vector<double>& loads) const {
  Route route;
  for (const int source : group) {
    for (const int destination : group) {
      if (source == destination) continue;
      route.clear();
      append_route(source, destination, route);
      for (const Hop& hop : route) loads[hop.bundle] += bytes * hop.share;
    }
  }
}

bool Fabric::reduces(std::span<const int> /*group*/) const { return false; }

void Fabric::append_reduction(std::span<const int> /*group*/, Route& /*route*/) const {
  throw std::logic_error("the switches of this fabric do not reduce");
}

void Fabric::append_multicast(std::span<const int> /*group*/, Route& /*route*/) const {
  throw std::logic_error("the switches of this fabric do not multicast");
}

std::vector<int> Fabric::torus(std::span<const int> /*group*/) const { return {}; }

RingOrders Fabric::rings(std::span<const int> /*group*/) const { return {}; }

void require_one_die(const char* topology, const RankLayout& layout) {
  if (layout.dies == 1) return;
  throw config::KeyError({"system.scale_up.kind", "system.accelerator.dies"},
                         fmt::format("topology {} connects packages; dies must be 1", topology));
}

void require_die_links(const SystemConfig& system) {
  const AcceleratorConfig& package = system.accelerator;
  if (package.dies == 1 || package.die_to_die.value.base() > 0) return;
  throw config::KeyError({"system.accelerator.dies", "system.accelerator.die_to_die"},
                         "an accelerator of several dies needs die_to_die bandwidth");
}

config::Fault package_fault(const std::string& what, std::span<const int> sizes,
                            const SystemConfig& system, const std::string& key) {
  constexpr double kMost = 1e18;
  double packages = 1;
  for (const int size : sizes) packages = std::min(packages * size, kMost);
  if (packages == system.accelerators.value) return {};
  return {fmt::format("{} {} packages, the system {}", what, static_cast<std::int64_t>(packages),
                      system.accelerators.value),
          {"scale_up." + key, "accelerators", "scale_up.kind"}};
}

namespace {

/// @throws config::KeyError where its keys do not fit the system
const ScaleUpTopology& fitting_topology(const SystemConfig& system) {
  const auto* topology = dynamic_cast<const ScaleUpTopology*>(system.scale_up.keys.get());
  if (topology == nullptr) throw std::logic_error(system.name + " has no topology");
  config::Fault fault = topology->fault(system);
  for (std::string& key : fault.keys) key.insert(0, "system.");
  if (!fault.text.empty()) throw config::KeyError(std::move(fault.keys), fault.text);
  return *topology;
}

}  // namespace

std::unique_ptr<Fabric> build_fabric(const SystemConfig& system, const RankLayout& layout,
                                     Topology& topology) {
  for (int rank = 0; rank < layout.ranks(); ++rank) topology.add_rank(rank_name(layout, rank));
  std::unique_ptr<Fabric> fabric = fitting_topology(system).build(system, layout, topology);
  if (layout.systems > 1) {
    const ScaleOutBuilder scale_out =
        ScaleOutRegistry::at("scale-out topology", system.scale_out.kind, "system.scale_out.kind");
    fabric = scale_out(system, layout, std::move(fabric), topology);
  }
  if (system.host.links) fabric = add_host_links(system, layout, std::move(fabric), topology);
  return fabric;
}

}  // namespace orrery
