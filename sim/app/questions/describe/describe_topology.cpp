// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "models/topologies/torus.h"
#include "models/transfers/flow_model.h"
#include "sim/graph/dot.h"
#include "sim/graph/topology_boost.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

struct LinkTotal {
  std::int64_t links = 0;  ///< one way each
  BytesPerSecond capacity;
};

struct ChipTotal {
  int chips = 0;
  std::size_t least_ports = 0, most_ports = 0;  ///< ports in use of a switch
};

/// "l1_switch" of "system0/node3/plane2/l1_switch4".
std::string chip_kind(const std::string& name) {
  const std::string kind = name.substr(name.rfind('/') + 1);
  return kind.substr(0, kind.find_last_not_of("0123456789") + 1);
}

std::map<std::string, ChipTotal> count_chips(const Topology& drawn) {
  std::map<std::string, ChipTotal> chips;
  const auto& graph = drawn.graph();
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    if (graph[*vertex].rank >= 0) continue;
    const std::size_t ports = boost::out_degree(*vertex, graph);
    ChipTotal& total = chips[chip_kind(drawn.vertex_name(*vertex))];
    total.least_ports = total.chips == 0 ? ports : std::min(total.least_ports, ports);
    total.most_ports = std::max(total.most_ports, ports);
    ++total.chips;
  }
  return chips;
}

std::map<LinkKind, LinkTotal> count_links(const Topology& topology) {
  std::map<LinkKind, LinkTotal> links;
  for (const Bundle& bundle : topology.bundles()) {
    links[bundle.kind].links += bundle.links;
    links[bundle.kind].capacity += bundle.capacity;
  }
  return links;
}

/// What the first half of the ranks sends to the second in uniform traffic, both ways at once.
BytesPerSecond bisection(const FlowModel& network) {
  std::vector<int> ranks(static_cast<std::size_t>(network.topology().ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto half = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
  const std::vector<Bundle>& bundles = network.topology().bundles();
  std::vector<double> all(bundles.size()), inside(bundles.size());
  network.fabric().add_exchange(ranks, 1, all);
  network.fabric().add_exchange({ranks.begin(), half}, 1, inside);
  network.fabric().add_exchange({half, ranks.end()}, 1, inside);
  double time = 0;
  for (std::size_t i = 0; i < bundles.size(); ++i)
    time = std::max(time, (all[i] - inside[i]) / bundles[i].capacity.base());
  const auto first = static_cast<double>(half - ranks.begin());
  const double crossing = first * (static_cast<double>(ranks.size()) - first);
  return BytesPerSecond(time > 0 ? crossing / time : 0);
}

struct Farthest {
  int rank = 0;
  int hops = 0;
  double paths = 0;  ///< shortest, over physical links
};

/// Shortest paths from the first rank to another, over hosts or not.
double shortest_paths(const Topology& drawn, int rank, bool over_hosts) {
  const auto& graph = drawn.graph();
  std::vector<int> distance(boost::num_vertices(graph), -1);
  std::vector<double> paths(distance.size());
  std::vector<Topology::VertexId> queue = {drawn.rank_vertex(0)};
  distance[queue[0]] = 0;
  paths[queue[0]] = 1;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const auto at = queue[next];
    for (auto [link, end] = boost::out_edges(at, graph); link != end; ++link) {
      if (link_kind(drawn, *link) == LinkKind::kHost && !over_hosts) continue;
      const auto to = boost::target(*link, graph);
      if (distance[to] < 0) {
        distance[to] = distance[at] + 1;
        queue.push_back(to);
      }
      if (distance[to] == distance[at] + 1) paths[to] += paths[at];
    }
  }
  return paths[drawn.rank_vertex(rank)];
}

/// The rank with the longest way from the first, and the shortest paths there.
Farthest farthest(const FlowModel& network, const Topology& drawn) {
  Farthest found;
  for (int rank = 1; rank < drawn.ranks(); ++rank) {
    const int hops = network.fabric().hops(0, rank);
    if (hops > found.hops) found = {rank, hops, 0};
  }
  found.paths = shortest_paths(drawn, found.rank, false);
  if (found.paths == 0) found.paths = shortest_paths(drawn, found.rank, true);
  return found;
}

/// The system with its links to host boards, which simulations leave out unless they are asked for.
/// Topologies that link hosts by themselves have them, or have none.
SystemConfig with_hosts(SystemConfig system) {
  system.host.links =
      system.accelerator.host_link.present() && !system.scale_up.keys->links_hosts();
  return system;
}

void add_chips(const Topology& drawn, NamedValues& lines) {
  for (const auto& [kind, total] : count_chips(drawn)) {
    const std::string ports = total.least_ports == total.most_ports
                                  ? std::to_string(total.most_ports)
                                  : fmt::format("{} to {}", total.least_ports, total.most_ports);
    lines.add(kind, fmt::format("{}, {} ports in use each", total.chips, ports),
              {{"chips", total.chips},
               {"least_ports", total.least_ports},
               {"most_ports", total.most_ports}});
  }
}

}  // namespace

Answer describe_topology(const SystemConfig& system, int copies) {
  const FlowModel network(with_hosts(system), copies);
  const Topology drawn = network.drawn();
  NamedValues lines;
  lines.add_count("ranks", drawn.ranks());
  add_chips(drawn, lines);
  if (const TorusOptics optics = torus_optics(system.scale_up); optics.switches > 0) {
    lines.add("optical switches",
              fmt::format("{} a system, {} ports in use each, {} cubes of {} optical links",
                          optics.switches, optics.ports, optics.cubes, optics.links_per_cube),
              {{"switches", optics.switches}, {"ports", optics.ports}, {"cubes", optics.cubes}});
  }
  for (const auto& [kind, total] : count_links(drawn)) {
    lines.add(fmt::format("{} links", to_string(kind)),
              fmt::format("{}, both ways counted, {} in all", total.links,
                          format_si(total.capacity.base(), "B/s")),
              {{"links", total.links}, {"bytes_per_s", total.capacity.base()}});
  }
  if (drawn.ranks() > 1) {
    const BytesPerSecond half = bisection(network);
    lines.add("bisection", format_si(half.base(), "B/s") + " each way, uniform traffic",
              half.base());
    const Farthest far = farthest(network, drawn);
    lines.add("longest way", fmt::format("{} links, to {}", far.hops, drawn.rank_name(far.rank)),
              far.hops);
    lines.add("shortest paths there", std::to_string(static_cast<long long>(far.paths)), far.paths);
  }
  const std::string outside = copies == 1 ? "" : fmt::format(", {} between", system.scale_out.kind);
  Answer answer = lines.answer(Table::Align::kLeft);
  answer.parts.insert(answer.parts.begin(), fmt::format("{} x {}: {}{}\n", copies, system.name,
                                                        system.scale_up.kind, outside));
  return answer;
}

std::string topology_dot(const SystemConfig& system, int copies) {
  std::ostringstream out;
  write_dot(out, FlowModel(with_hosts(system), copies).drawn(), system.name);
  return out.str();
}

}  // namespace orrery
