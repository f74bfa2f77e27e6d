// SPDX-License-Identifier: Apache-2.0
// A topology of NCCL as a system of kind `graph`, or of kind `pcie` where its cards have nothing
// but slots and bridges, that extends one of the library, which has what NCCL does not write down:
// the accelerator, latencies, power. The PCI identity of the GPUs tells which one.
#include <fmt/core.h>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/library.h"
#include "sim/units/text.h"
#include "validation/importers/gpu_parts.h"
#include "validation/importers/importer.h"
#include "validation/importers/topology_file.h"

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

/// A node of cards whose PCI tree is as regular as the topology `pcie` describes: on each processor
/// as many cards as on the others, on each switch as many as on the others, in order.
struct PcieBox {
  Slot card, uplink;   ///< the latter of a switch
  int per_switch = 0;  ///< cards of a switch; 0: there are none
  int sockets = 1;
  int bridge = 0;  ///< neighbours that NVLink joins; 0: none
  std::optional<BytesPerSecond> socket_link{};
};

/// Nothing where cards have links to switches of their own, or the tree is not regular.
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
  PcieBox box{card, uplink, direct ? 0 : *of_switch, static_cast<int>(file.gpus()) / *of_socket,
              *bridge};
  for (const TopologyWire& wire : file.wires())
    if (wire.from.starts_with("cpu") && wire.to.starts_with("cpu"))
      box.socket_link = wire.bandwidth;
  return box;
}

/// The block `scale_up` of a system that extends one of kind `pcie`.
std::string yaml_of(const PcieBox& box) {
  std::string text =
      fmt::format(R"(
scale_up:
  kind: pcie
  pcie:
    generation: {}
    lanes: {}
    packages_per_switch: {}
    uplink_lanes: {}
    switch_lanes: 0
    sockets: {}
    bridge: {}
)",
                  box.card.generation, box.card.lanes, box.per_switch,
                  box.per_switch > 0 ? box.uplink.lanes : 0, box.sockets, box.bridge);
  if (box.sockets > 1 && box.socket_link)
    text +=
        fmt::format("    socket_link: {{value: {}, source: what NCCL takes of these processors}}\n",
                    print(*box.socket_link));
  return text;
}

/// Whether a system of the library, or a file, is one of kind `pcie`.
bool is_pcie_system(const std::string& system) {
  const std::string path = config::Library::is_path(system)
                               ? system
                               : config::default_library().locate("systems", system, "");
  return config::input_files().read(path).text.find("\n  kind: pcie\n") != std::string::npos;
}

/// The system that a topology extends.
struct TopologyBase {
  std::string system;
  const char* accelerator = nullptr;  ///< another one than that of the system
};

/// "NVIDIA H100 PCIe (PCI device 10de:2331)", as far as it is told.
std::string name_of(const TopologyFile::Identity& gpu) {
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  constexpr std::uint16_t kHygon = 0x1d94;
  const std::string text = part != nullptr        ? part->name
                           : gpu.vendor == kHygon ? "a Hygon DCU"
                                                  : "a GPU that is not known";
  if (gpu.device != 0)
    return fmt::format("{} (PCI device {:04x}:{:04x})", text, gpu.vendor, gpu.device);
  if (!gpu.architecture.empty()) return fmt::format("{} (gcn {})", text, gpu.architecture);
  return gpu.sm != 0 ? fmt::format("{} (sm {})", text, gpu.sm) : text;
}

/// @throws config::ConfigError where the file does not tell, or the library lacks the part
TopologyBase base_of(const std::string& path, const TopologyFile& file, ImportedTable& table) {
  const TopologyFile::Identity gpu = file.identity();
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  const bool known = part != nullptr && part->system != nullptr;
  if (file.is_stub())
    throw config::ConfigError(fmt::format(
        "{}: there is no <gpu>, so that the links between the GPUs are not known; name the system "
        "that has them with --system{}",
        path,
        known ? fmt::format(", such as {}, for its GPUs are {}", part->system, part->name) : ""));
  if (known) return {part->system, part->accelerator};
  const char* usual = gpu.device == 0 && gpu.architecture.empty() && file.has_scale_up()
                          ? usual_system(gpu.sm)
                          : nullptr;
  if (usual == nullptr)
    throw config::ConfigError(fmt::format(
        "{}: the library has no system of {}; name one with --system that the topology extends",
        path, name_of(gpu)));
  table.notes.push_back(
      fmt::format("{}: the file tells no PCI device of its GPUs; sm {} is taken "
                  "for {} (say --system for another one)",
                  path, gpu.sm, usual));
  return {usual, nullptr};
}

/// What the user names counts; where the file says another part, that is told.
TopologyBase base_as_said(const std::string& path, const std::string& system,
                          const TopologyFile& file, ImportedTable& table) {
  require_system(system);
  const TopologyFile::Identity gpu = file.identity();
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  if (part == nullptr || part->system == nullptr || part->system != system)
    table.notes.push_back(
        fmt::format("{}: the file's GPUs are {}; accelerator and latencies are those of {}", path,
                    name_of(gpu), system));
  // The system that is written may lie in another folder than the file that it extends.
  return {config::Library::is_path(system) ? std::filesystem::absolute(system).string() : system,
          nullptr};
}

std::string topology_yaml(const TopologyFile& file, const TopologyBase& base) {
  std::ostringstream out;
  out << "# Links of a node as NCCL dumped them; all else as the system that it extends.\n"
      << "extends: " << base.system << "\n"
      << "name: " << base.system << " with the links of an NCCL topology\n";
  if (base.accelerator != nullptr) out << "accelerator: " << base.accelerator << "\n";
  out << "accelerators: {value: " << file.gpus() << ", source: the topology of NCCL}\n"
      << "accelerators_per_node: "
      << (file.gpus() % file.hosts() == 0 ? file.gpus() / file.hosts() : file.gpus()) << "\n";
  if (file.is_stub()) return out.str();
  const auto box = is_pcie_system(base.system) ? pcie_box(file) : std::nullopt;
  if (box) return out.str() + yaml_of(*box);
  out << "\nscale_up:\n  kind: graph\n  wires:\n";
  for (const TopologyWire& wire : file.wires()) {
    out << "    - {from: " << wire.from << ", to: " << wire.to << ", kind: " << wire.kind
        << ", links: " << wire.links;
    if (wire.bandwidth) out << ", bandwidth: " << print(*wire.bandwidth);
    out << "}\n";
  }
  return out.str();
}

ImportedTable import_nccl_topology(const std::string& path, const ImportOptions& options) {
  const TopologyFile file(path);
  ImportedTable table;
  table.notes = file.notes();
  const TopologyBase base = options.system.empty()
                                ? base_of(path, file, table)
                                : base_as_said(path, options.system, file, table);
  if (file.is_stub()) {
    table.notes.push_back(
        fmt::format("{}: there is no <gpu>: links between GPUs are those of {}, "
                    "the PCI tree stands in the table alone",
                    path, base.system));
  } else if (!file.has_scale_up() && file.gpus() > 1) {
    table.notes.push_back(path +
                          ": no GPU has a link to another one or to a switch: messages "
                          "between them take the PCI tree");
  }
  table.columns = {"from", "to", "kind", "links", "bytes_per_s"};
  for (const TopologyWire& wire : file.wires()) {
    const ImportedCell rate =
        wire.bandwidth ? ImportedCell(wire.bandwidth->base()) : ImportedCell();
    table.rows.push_back({wire.from, wire.to, std::string(wire.kind), wire.links, rate});
  }
  table.document = topology_yaml(file, base);
  return table;
}

const ImporterRegistry::Register registered_nccl_topology(
    "nccl-topology",
    "NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE of NCCL or RCCL: a system of kind graph",
    import_nccl_topology);

}  // namespace
}  // namespace orrery
