// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/pcie_box.h"

#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include "sim/config/input_files.h"
#include "sim/config/library.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr double kRateTolerance = 0.01;

/// A slot by its line rate, as topology files of NCCL have it.
struct Slot {
  int generation = 0, lanes = 0;
};
std::optional<Slot> slot_of(BytesPerSecond rate) {
  for (int generation = 3; generation <= 6; ++generation) {
    for (const int lanes : {4, 8, 16}) {
      const double line = 1e9 * std::ldexp(1.0, generation) / 8 * lanes * 128 / 130;
      if (std::abs(rate.base() / line - 1) < kRateTolerance) return Slot{generation, lanes};
    }
  }
  return std::nullopt;
}

/// The wire that ends at each vertex of the PCI tree, by its name.
std::map<std::string, const TopologyWire*> tree_of(const TopologyFile& file) {
  std::map<std::string, const TopologyWire*> above;
  for (const TopologyWire& wire : file.wires())
    if (std::string_view(wire.kind) == "host" && !wire.to.starts_with("cpu"))
      above.emplace(wire.to, &wire);
  return above;
}

/// Cards in a row that have the same name above them; nothing where the rows differ in length.
std::optional<int> row_length(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  const int length = counts.begin()->second;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t first = i - i % static_cast<std::size_t>(length);
    if (counts[names[i]] != length || names[i] != names[first]) return std::nullopt;
  }
  return length;
}

/// Neighbours that NVLink joins: 2 where it joins every pair and nothing else, 0 where nothing is.
std::optional<int> bridges_of(const TopologyFile& file) {
  std::size_t pairs = 0, links = 0;
  for (const TopologyWire& wire : file.wires()) {
    if (std::string_view(wire.kind) != "scale_up") continue;
    ++links;
    for (std::size_t i = 0; i + 1 < file.gpus(); i += 2) {
      pairs += wire.from == "accelerator" + std::to_string(i) &&
               wire.to == "accelerator" + std::to_string(i + 1);
    }
  }
  if (links == 0) return 0;
  return pairs == links && 2 * pairs == file.gpus() ? std::optional<int>(2) : std::nullopt;
}

/// Processor, switch next to it and slots on the way of each card.
struct Ways {
  std::vector<std::string> processors, switches;
  std::vector<Slot> cards, uplinks;
};
std::optional<Ways> ways_of(const TopologyFile& file) {
  const auto above = tree_of(file);
  Ways ways;
  for (std::size_t gpu = 0; gpu < file.gpus(); ++gpu) {
    std::string at = "accelerator" + std::to_string(gpu), below;
    std::optional<Slot> uplink;
    for (auto wire = above.find(at); wire != above.end(); wire = above.find(at)) {
      if (!wire->second->bandwidth) return std::nullopt;
      uplink = slot_of(*wire->second->bandwidth);
      if (!uplink) return std::nullopt;
      if (below.empty()) ways.cards.push_back(*uplink);
      below = at;
      at = wire->second->from;
    }
    if (!uplink) return std::nullopt;
    ways.processors.push_back(at);
    ways.switches.push_back(below.starts_with("accelerator") ? std::string() : below);
    ways.uplinks.push_back(*uplink);
  }
  return ways;
}

}  // namespace

std::optional<PcieBox> pcie_box(const TopologyFile& file) {
  const auto bridge = bridges_of(file);
  if (!bridge || file.is_stub() || file.hosts() != 1) return std::nullopt;
  const auto ways = ways_of(file);
  if (!ways) return std::nullopt;
  const auto of_socket = row_length(ways->processors);
  const bool direct = ways->switches.front().empty();
  const auto of_switch = row_length(ways->switches);
  if (!of_socket || !of_switch || (!direct && *of_switch > *of_socket)) return std::nullopt;
  if (direct && *of_switch != static_cast<int>(file.gpus())) return std::nullopt;
  const Slot card = ways->cards.front(), uplink = ways->uplinks.front();
  for (std::size_t i = 0; i < ways->cards.size(); ++i) {
    const bool same =
        ways->cards[i].generation == card.generation && ways->cards[i].lanes == card.lanes &&
        ways->uplinks[i].generation == card.generation && ways->uplinks[i].lanes == uplink.lanes;
    if (!same) return std::nullopt;
  }
  PcieBox box{card.generation,
              card.lanes,
              direct ? 0 : *of_switch,
              uplink.lanes,
              static_cast<int>(file.gpus()) / *of_socket,
              *bridge,
              std::nullopt};
  for (const TopologyWire& wire : file.wires())
    if (wire.from.starts_with("cpu") && wire.to.starts_with("cpu"))
      box.socket_link = wire.bandwidth;
  return box;
}

std::string PcieBox::yaml() const {
  std::ostringstream out;
  out << "\nscale_up:\n  kind: pcie\n  pcie:\n    generation: " << generation
      << "\n    lanes: " << lanes << "\n    packages_per_switch: " << per_switch
      << "\n    uplink_lanes: " << (per_switch > 0 ? uplink_lanes : 0)
      << "\n    switch_lanes: 0\n    sockets: " << sockets << "\n    bridge: " << bridge << "\n";
  if (sockets > 1 && socket_link) {
    out << "    socket_link: {value: " << print(*socket_link)
        << ", source: what NCCL takes of these processors}\n";
  }
  return out.str();
}

bool is_pcie_system(const std::string& system) {
  const std::string path = config::Library::is_path(system)
                               ? system
                               : config::default_library().locate("systems", system, "");
  return config::input_files().read(path).text.find("\n  kind: pcie\n") != std::string::npos;
}

}  // namespace orrery
